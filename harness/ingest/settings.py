"""What a recorded history allowed, by its own lines, a small YAML file and options.

An unstated setting is taken at its strictest. If a check answers differently with the most lenient value, its answer
depends on that setting, and is UNKNOWN.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from harness.contracts.checks import Settings
from harness.errors import EvidenceError
from harness.scenario.errors import problems_of
from harness.scenario.file import refusal
from harness.scenario.source import Problem, Source, parse_yaml, set_option, text_of
from harness.values import ACKS_ALL

ALL = "all"
NONE = "none"
"""As a list of topics: no topic."""
EVERY_REPLICA = 2**31 - 1
"""As `min.insync.replicas`: all replicas that a partition has."""


def _number(value: Any) -> Any:
    return -1 if value == ALL else value


def _minimum(value: Any) -> Any:
    return EVERY_REPLICA if value == ALL else value


def _topics(value: Any) -> Any:
    """Return names of topics, comma-separated, from a list or from such a text; `none` is no topic."""
    if isinstance(value, list):
        return ",".join(map(str, value))
    return "" if value == NONE else str(value) if isinstance(value, int) else value


_Topics = Annotated[str, BeforeValidator(_topics), Field(pattern=r"^([^,\s]+(,[^,\s]+)*)?$")]


class AllowedSettings(BaseModel):
    """Each at its strictest, unless stated."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    acks: Annotated[
        Literal[-1, 0, 1], BeforeValidator(_number), Field(description="Of sends that do not say: 0, 1 or all")
    ] = -1
    min_insync_replicas: Annotated[
        int,
        BeforeValidator(_minimum),
        Field(
            ge=1,
            strict=True,
            description="Kafka's min.insync.replicas, the least of all topics; all: as many as there are replicas",
        ),
    ] = EVERY_REPLICA
    unclean_leader_election: Annotated[
        bool, Field(strict=True, description="Kafka's unclean.leader.election.enable, of any topic")
    ] = False
    idempotence: Annotated[
        bool, Field(strict=True, description="Kafka's enable.idempotence; off, if one producer had it off")
    ] = True
    power_loss: Annotated[
        bool, Field(strict=True, description="Whether what was not flushed to disk may be gone: the power was cut")
    ] = False
    read_from_start: Annotated[
        bool,
        Field(strict=True, description="Whether readers began at the start of each partition"),
    ] = True
    deleting_topics: Annotated[
        _Topics,
        Field(description="Topics, with commas, from which retention or clients delete records, or none"),
    ] = ""
    compacted_topics: Annotated[
        _Topics, Field(description="Topics, with commas, whose cleanup.policy has compact, or none")
    ] = ""

    def for_checks(self) -> Settings:
        """Return them as checks take them."""
        return Settings(
            acks=frozenset({self.acks}),
            min_insync_replicas=self.min_insync_replicas,
            unclean_leader_election=self.unclean_leader_election,
            idempotence=self.idempotence,
            power_loss=self.power_loss,
            read_from_start=self.read_from_start,
            deleting_topics=self.deleting_topics,
            compacted_topics=self.compacted_topics,
        )

    def is_stated(self, name: str) -> bool:
        """Return whether a setting was stated anywhere."""
        return name in self.model_fields_set

    def text(self, name: str) -> str:
        """Return the value of a setting as `--set` takes it."""
        value = getattr(self, name)
        if isinstance(value, str):
            return value or NONE
        return (
            ALL if (name, value) in (("acks", ACKS_ALL), ("min_insync_replicas", EVERY_REPLICA)) else str(value).lower()
        )

    def with_said(self, said: Iterable[tuple[str, str]]) -> "AllowedSettings":
        """Return them with the settings that lines of the history state; earlier statements win.

        Args:
            said: Names and values; of several values of a name the most lenient one applies to the history.

        Raises:
            EvidenceError: there is no such setting, or it has no such value.
        """
        values: dict[str, Any] = {}
        for name, text in said:
            value = _value_of(name, text)
            values[name] = _LENIENT[name].of(values[name], value) if name in values else value
        return AllowedSettings(**(values | self.model_dump(exclude_unset=True)))


@dataclass(frozen=True, slots=True)
class Lenient:
    """The most lenient value of a setting."""

    value: int | bool | str
    """For compacted topics empty: `Otherwise.compacted` stands for all of them."""
    of: Callable[..., Any]
    """Returns the more lenient of two values."""
    decides: str
    """What `--set` must state so that checks can answer; empty if the strictest value is not doubted."""


def _all_topics(some: str, more: str) -> str:
    return ",".join(dict.fromkeys(name for names in (some, more) for name in names.split(",") if name))


COMPACTED = "compacted_topics=none"
_LENIENT: Mapping[str, Lenient] = {
    "acks": Lenient(1, lambda a, b: max((a, b), key=(-1, 1, 0).index), "acks=all"),
    "min_insync_replicas": Lenient(1, min, "min_insync_replicas=NUMBER"),
    "unclean_leader_election": Lenient(True, max, "unclean_leader_election=false"),
    "idempotence": Lenient(False, min, "idempotence=true"),
    "power_loss": Lenient(True, max, "power_loss=false"),
    "read_from_start": Lenient(False, min, "read_from_start=true"),
    "deleting_topics": Lenient("", _all_topics, ""),
    "compacted_topics": Lenient("", _all_topics, COMPACTED),
}
"""By the name of the setting."""


def otherwise(settings: AllowedSettings) -> dict[str, AllowedSettings]:
    """Return the settings with each unstated one at its most lenient, by what would state it."""
    return {
        each.decides: settings.model_copy(update={name: each.value})
        for name, each in _LENIENT.items()
        if each.decides and not settings.is_stated(name)
    }


def _value_of(name: str, text: str) -> Any:
    value = parse_yaml(text, name)
    problems = value.problems
    try:
        settings = AllowedSettings.model_validate({name: value.data})
    except ValidationError as error:
        problems = problems or problems_of(AllowedSettings, error)
    if problems:
        raise EvidenceError(f"a line of the history states {name}={text}: {problems[0].message}")
    return getattr(settings, name)


def load_settings(path: Path | None, sets: list[str]) -> AllowedSettings:
    """Return the settings of a file, overridden by the options.

    Raises:
        ScenarioError: one line an error, each with file and line or the option.
    """
    source = _read(path) if path else Source("--set", data={})
    for text in sets:
        source.override(set_option(text))
    try:
        settings = AllowedSettings.model_validate(source.data)
    except ValidationError as error:
        source.problems += problems_of(AllowedSettings, error)
    if source.problems:
        raise refusal(source)
    return settings


def _read(path: Path) -> Source:
    source = parse_yaml(text_of(path, str(path)), str(path))
    if not source.problems and not isinstance(source.data, dict):
        source.problems.append(Problem((), f"must be a mapping of keys: {', '.join(AllowedSettings.model_fields)}"))
        raise refusal(source)
    if source.problems:
        raise refusal(source)
    return source
