"""The value that stands for a recorded run; each phase loads it once and hands it on."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from harness.contracts.checks import Settings
from harness.run.emits import Emits, emits_of
from harness.run.holes import holes_in
from harness.run.settings import settings_of
from harness.scenario.file import scenario_of
from harness.scenario.model import Scenario
from harness.scenario.plan import Plan, load_plan
from harness.scenario.used_plugins import Missing, Used, missing_plugins, plugins_of
from harness.store.folder import RunFolder
from harness.store.seal import Hole
from harness.store.version import Logged, require_version


@dataclass(frozen=True, kw_only=True)  # without slots: what is derived is kept
class Run:
    """What the folder of a run declares, and what follows from it."""

    folder: RunFolder
    scenario: Scenario
    plan: Plan
    plugins: Sequence[Used] = ()
    """The plugins that it used."""
    missing_plugins: Sequence[Missing] = ()
    """Those of them that are not on this machine."""
    logged: Logged | None = None
    """What its brokers can have logged, if its version is known to be read."""

    @classmethod
    def load(cls, folder: RunFolder, logged: Logged | None = None) -> Self:
        """Return the run of a folder.

        Raises:
            EvidenceError: its scenario, its plan or its list of plugins cannot be read.
            ScenarioError: the file of the scenario holds none.
        """
        plugins = plugins_of(folder)
        missing = missing_plugins(plugins)
        return cls(
            folder=folder,
            scenario=scenario_of(folder, missing),
            plan=load_plan(folder.plan),
            plugins=plugins,
            missing_plugins=missing,
            logged=logged,
        )

    @cached_property
    def emits(self) -> Emits:
        """What evidence it can have left.

        Raises:
            EvidenceError: the folder does not state its version, or another one.
        """
        return emits_of(self.scenario, require_version(self.folder) if self.logged is None else self.logged)

    @cached_property
    def settings(self) -> Settings:
        """What its settings allow."""
        return settings_of(self.scenario, self.plan)

    @cached_property
    def holes(self) -> list[Hole]:
        """What is missing from its evidence, and the damage that can be detected, when it is first asked for."""
        return holes_in(self.folder, self.scenario, self.plan, self.emits.uncollected)
