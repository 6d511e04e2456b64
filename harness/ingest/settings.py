"""What those who recorded a history allowed: a small YAML file and options, with a default for what they do not say."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from harness.contracts.checks import Settings
from harness.scenario.errors import problems_of
from harness.scenario.file import refusal
from harness.scenario.source import Problem, Source, parse_yaml, set_option, text_of

ALL = "all"


def _number(value: Any) -> Any:
    return -1 if value == ALL else value


class AllowedSettings(BaseModel):
    """By default what Kafka itself would do, so that nothing is excused that nobody asked for."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    acks: Annotated[
        Literal[-1, 0, 1], BeforeValidator(_number), Field(description="Of sends that do not say: 0, 1 or all")
    ] = -1
    min_insync_replicas: Annotated[
        int, Field(ge=1, strict=True, description="Kafka's min.insync.replicas, the least of all topics")
    ] = 1
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
    ] = False

    def for_checks(self) -> Settings:
        """Return them as checks take them."""
        return Settings(
            acks=frozenset({self.acks}),
            min_insync_replicas=self.min_insync_replicas,
            unclean_leader_election=self.unclean_leader_election,
            idempotence=self.idempotence,
            power_loss=self.power_loss,
            read_from_start=self.read_from_start,
        )


def load_settings(path: Path | None, sets: list[str]) -> AllowedSettings:
    """Return what a file says, with the options over it.

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
