"""What a recorded history allowed, by its own lines, a small YAML file and options.

An unstated setting is taken at its strictest. If a check answers differently with the most lenient value, its answer
depends on that setting, and is UNKNOWN.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from harness.contracts.checks import ANY_TOPIC, Settings
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
        Literal[-1, 0, 1], BeforeValidator(_number), Field(description="For sends without acks: 0, 1 or all")
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
        bool, Field(strict=True, description="Whether power was cut, so that data not flushed to disk may be lost")
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
    every_event: Annotated[
        bool,
        Field(strict=True, description="Whether brokers log every kind of state change, also those that do not occur"),
    ] = True

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

    def under(self, stated: "AllowedSettings") -> "AllowedSettings":
        """Return them with what options and the settings file state over them."""
        return AllowedSettings(**(self.model_dump(exclude_unset=True) | stated.model_dump(exclude_unset=True)))

    def contradicting(self, stated: "AllowedSettings") -> list[str]:
        """Return, of each setting that the history states otherwise, its name, this value and the `stated` one."""
        both = self.model_fields_set & stated.model_fields_set
        return [
            f"the history states {name}={self.text(name)}, options or the settings file state "
            f"{name}={stated.text(name)}, which applies"
            for name in AllowedSettings.model_fields
            if name in both and getattr(self, name) != getattr(stated, name)
        ]

    def deleting(self, topics: Iterable[str]) -> "AllowedSettings":
        """Return them with topics from which clients deleted records, whatever is stated."""
        names = _all_topics(self.deleting_topics, ",".join(topics))
        return self.model_copy(update={"deleting_topics": names}) if names != self.deleting_topics else self


@dataclass(frozen=True, slots=True)
class Lenient:
    """The most lenient value of a setting."""

    value: int | bool | str
    """For compacted topics empty: `Otherwise.compacted` stands for all of them."""
    of: Callable[..., Any]
    """Returns the more lenient of two values."""
    decides: str
    """What `--set` states instead, so that checks may answer."""


def _all_topics(some: str, more: str) -> str:
    return ",".join(dict.fromkeys(name for names in (some, more) for name in names.split(",") if name))


KAFKA_NAMES: Mapping[str, str] = {
    "enable.idempotence": "idempotence",
    "request.required.acks": "acks",
    "min.insync.replicas": "min_insync_replicas",
    "unclean.leader.election.enable": "unclean_leader_election",
}
"""The settings that are Kafka's own, by the names that clients and brokers have for them."""
_DELETING = "is not accepted here: state the topics from which records may be deleted, as deleting_topics"
KAFKA_HINTS: Mapping[str, str] = {
    "auto.offset.reset": "is not accepted here: state whether readers began at the start, as read_from_start",
    "cleanup.policy": "is not accepted here: state the topics that are compacted, as compacted_topics",
    "retention.ms": _DELETING,
    "retention.bytes": _DELETING,
}
"""What to state instead of other names of Kafka's."""
COMPACTED = "compacted_topics=none"
EVERY_EVENT = "every_event=true"
_LENIENT: Mapping[str, Lenient] = {
    "acks": Lenient(1, lambda a, b: max((a, b), key=(-1, 1, 0).index), "acks=all"),
    "min_insync_replicas": Lenient(1, min, "min_insync_replicas=NUMBER"),
    "unclean_leader_election": Lenient(True, max, "unclean_leader_election=false"),
    "idempotence": Lenient(False, min, "idempotence=true"),
    "power_loss": Lenient(True, max, "power_loss=false"),
    "read_from_start": Lenient(False, min, "read_from_start=true"),
    "deleting_topics": Lenient(ANY_TOPIC, _all_topics, "deleting_topics=none"),
    "compacted_topics": Lenient("", _all_topics, COMPACTED),
    "every_event": Lenient(False, min, EVERY_EVENT),
}
"""By the name of the setting."""


def otherwise(settings: AllowedSettings) -> dict[str, AllowedSettings]:
    """Return the settings with each unstated one at its most lenient, by what would state it.

    Whether every event is logged is for the kinds of events that occur to decide, not for the checks.
    """
    return {
        each.decides: settings.model_copy(update={name: each.value})
        for name, each in _LENIENT.items()
        if not settings.is_stated(name) and each.decides != EVERY_EVENT
    }


def stated_in(said: Iterable[tuple[str, str]], place_of: Callable[[str, str], str]) -> AllowedSettings:
    """Return the settings that lines of a history state.

    Args:
        said: Names, of Kafka's or of these settings, and values; of several values the most lenient one applies.
        place_of: Returns file and line of a name and value.

    Raises:
        EvidenceError: there is no such setting, or it has no such value.
    """
    values: dict[str, Any] = {}
    for written, text in said:
        name = KAFKA_NAMES.get(written, written)
        try:
            value = _value_of(name, text)
        except ValueError as error:
            raise EvidenceError(f"{place_of(written, text)}: {written}={text}: {error}") from None
        values[name] = _LENIENT[name].of(values[name], value) if name in values else value
    return AllowedSettings(**values)


def _value_of(name: str, text: str) -> Any:
    """Return the value of a setting; raises ValueError with what is wrong."""
    if name in KAFKA_HINTS:
        raise ValueError(KAFKA_HINTS[name])
    value = parse_yaml(text, name)
    problems = value.problems
    try:
        settings = AllowedSettings.model_validate({name: value.data})
    except ValidationError as error:
        problems = problems or problems_of(AllowedSettings, error)
    if problems:
        raise ValueError(problems[0].message)
    return getattr(settings, name)


def load_settings(path: Path | None, sets: list[str]) -> AllowedSettings:
    """Return the settings of a file, overridden by the options.

    Raises:
        ScenarioError: one line an error, each with file and line or the option.
    """
    source = _read(path) if path else Source("--set", data={})
    _use_own_names(source)
    for text in sets:
        option = set_option(text)
        if option.key in KAFKA_HINTS:
            source.problems.append(Problem((option.key,), KAFKA_HINTS[option.key], origin=option.option))
        else:
            source.override(replace(option, key=KAFKA_NAMES.get(option.key, option.key)))
    try:
        settings = AllowedSettings.model_validate(source.data)
    except ValidationError as error:
        source.problems += problems_of(AllowedSettings, error)
    if source.problems:
        raise refusal(source)
    return settings


def _use_own_names(source: Source) -> None:
    """Rename the keys that are Kafka's names; a name without a setting here is a problem that says what to state."""
    for key in [key for key in source.data if key in KAFKA_NAMES or key in KAFKA_HINTS]:
        value, name = source.data.pop(key), KAFKA_NAMES.get(key, key)
        if key in KAFKA_HINTS:
            source.problems.append(Problem((key,), KAFKA_HINTS[key]))
        elif name in source.data:
            source.problems.append(Problem((key,), f"is {name}, which is given too"))
        else:
            source.data[name] = value
            source.origins[(name,)] = source.origins[(key,)]


def _read(path: Path) -> Source:
    source = parse_yaml(text_of(path, str(path)), str(path))
    if not source.problems and not isinstance(source.data, dict):
        source.problems.append(Problem((), f"must be a mapping of keys: {', '.join(AllowedSettings.model_fields)}"))
        raise refusal(source)
    if source.problems:
        raise refusal(source)
    return source
