"""Puts mutants to the tables of `tests/checks/`, all in one session: a mutant that no case notices survives."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from harness.contracts import registry
from harness.contracts.checks import Check
from tests.checks.answers import Batch, batches_of, confirm, judged, tables_in
from tests.mutation.mutants import Mutant, mutants

CHECKS = "kafka_chaos.checks"
SHARED = {
    f"harness.analysis.check_helpers.{name}": Path(registry.__file__).parents[1]
    / "analysis"
    / "check_helpers"
    / f"{name}.py"
    for name in (
        "assumptions",
        "client_transactions",
        "compaction",
        "findings",
        "groups",
        "liveness",
        "min_insync",
        "poll_steps",
        "records",
        "replication",
        "send_reversals",
        "transactions",
    )
}
"""What checks are made of; its mutants are put to the tests of all checks that import it."""
_BROKEN = (PySparkException, Py4JError, ArithmeticError, AttributeError, LookupError, NameError, TypeError, ValueError)
"""What a mutant raises that is no program any more, or asks for what is not there."""


@dataclass(frozen=True)
class Module:
    """A module with guards, and the checks whose tests run it."""

    name: str
    path: Path
    checks: tuple[str, ...]
    """Names of their modules."""

    def mutants(self) -> list[Mutant]:
        return mutants(self.name, self.path.read_text(encoding="utf-8"))


def modules() -> dict[str, Module]:
    """Return every module whose guards are mutated, by its last name."""
    folder = registry.content_root() / "checks"
    paths = {path.stem: path for path in sorted(folder.glob("*.py")) if not path.stem.startswith("_")}
    by_stem = {stem: Module(f"{CHECKS}.{stem}", path, (stem,)) for stem, path in paths.items()}
    for name, path in SHARED.items():
        users = tuple(stem for stem, of in paths.items() if f"from {name} import" in of.read_text(encoding="utf-8"))
        by_stem[path.stem] = Module(name, path, users)
    return by_stem


class Judge:
    """Says which mutants live."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._batches: dict[str, list[Batch]] = {}
        self._killers: list[str] = []
        """Checks whose tests killed, in the order of their last kill."""

    def survives(self, module: Module, mutant: Mutant) -> bool:
        """Return whether no test notices the mutant; the last killer is run first."""
        code = compile(mutant.made(), str(module.path), "exec")
        lately = [check for check in reversed(self._killers) if check in module.checks]
        for check in dict.fromkeys((*lately, *module.checks)):
            if not self._passes(check, {module.name: code}):
                self._killers = [*(each for each in self._killers if each != check), check]
                return False
        return True

    def passes(self, check: str) -> bool:
        """Return whether a check as it is passes its tests."""
        return self._passes(check, {})

    def _passes(self, check: str, changed: Mapping[str, CodeType]) -> bool:
        try:
            with _replaced(changed):
                plugin = _plugin(check, changed)
                for batch in self._tables(check):
                    judgements = judged(plugin, batch)
                    for name, case in batch.cases.items():
                        confirm(case, judgements[name])
        except (AssertionError, *_BROKEN):
            return False
        return True

    def _tables(self, check: str) -> list[Batch]:
        if check not in self._batches:
            self._batches[check] = [batch for cases in tables_in(check) for batch in batches_of(self._spark, cases)]
        return self._batches[check]


def _plugin(check: str, changed: Mapping[str, CodeType]) -> Check:
    """Return a check made anew, of the changed source where it is the one that is changed."""
    name = f"{CHECKS}.{check}"
    path = registry.content_root() / "checks" / f"{check}.py"
    code = changed.get(name) or compile(path.read_text(encoding="utf-8"), str(path), "exec")
    made: type[Check] = _executed(name, code).PLUGIN
    return made()


@contextmanager
def _replaced(changed: Mapping[str, CodeType]) -> Iterator[None]:
    """Give importers the changed modules that checks share, and modules that import them too."""
    originals = {name: sys.modules.get(name) for name in SHARED}
    try:
        for name in SHARED:
            if name in changed:
                sys.modules[name] = _executed(name, changed[name])
        if any(name in changed for name in SHARED):
            for name, path in SHARED.items():
                if name not in changed:
                    sys.modules[name] = _executed(name, compile(path.read_text(encoding="utf-8"), str(path), "exec"))
        yield
    finally:
        for name, module in originals.items():
            if module is not None:
                sys.modules[name] = module


def _executed(name: str, code: CodeType) -> ModuleType:
    module = ModuleType(name)
    exec(code, module.__dict__)
    return module
