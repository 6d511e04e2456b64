"""Which runs belong to a suite? `suites.yaml` beside the built-in scenarios, read as strictly as they are."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from harness.contracts import registry
from harness.contracts.parameters import Strict
from harness.contracts.registry import unknown_message
from harness.errors import ScenarioError
from harness.scenario.errors import problems_of
from harness.scenario.file import YAML_SUFFIXES, load_scenario, refusal
from harness.scenario.source import Problem, Source, options, parse_yaml, text_of

FILE_NAME = "suites.yaml"


class SuiteRun(Strict):
    """One run of a suite; its scenario has the values that are left out."""

    scenario: Annotated[str, Field(description="A built-in scenario, or the path of a YAML file")]
    driver: Annotated[str | None, Field(description="Where it runs: processes, containers, or simulated")] = None
    seed: Annotated[int | None, Field(ge=0, le=2**63 - 1, description="Left out: another one each time")] = None
    planted_bugs: Annotated[
        list[str], Field(description="Guards of the built-in broker that are switched off, so that the run must fail")
    ] = Field(default_factory=list)
    set: Annotated[list[str], Field(description="Values to override, each key=value")] = Field(default_factory=list)
    expect: Annotated[
        Literal["held", "violated", "missed"],
        Field(description="violated: the harness must find a broken promise; missed: an objective must be missed"),
    ] = "held"


class Suite(Strict):
    """Several runs under one name, carried out one after the other."""

    description: Annotated[str, Field(description="What it is for, in a sentence")]
    runs: Annotated[list[SuiteRun], Field(min_length=1, description="The runs, in their order")]


def suites_file() -> Path:
    """Return the file of the built-in suites."""
    return registry.content_root() / FILE_NAME


def is_suite(name: str) -> bool:
    """Return whether a name is that of a suite, FILE:NAME included, and not of a scenario.

    Raises:
        ScenarioError: a file of suites is wrong.
    """
    file, colon, _ = name.rpartition(":")
    if colon:
        return Path(file).is_file() or Path(file).suffix in YAML_SUFFIXES
    return not (registry.known(registry.Kind.SCENARIO, name) or Path(name).exists()) and name in load_suites()


def load_suite(name: str) -> Suite:
    """Return a suite by its name: a built-in one, or FILE:NAME for one of another file.

    Raises:
        ScenarioError: as `load_suites`, or there is no suite of that name.
    """
    file, _, name = name.rpartition(":")
    suites = load_suites(Path(file) if file else None)
    if name not in suites:
        raise ScenarioError(unknown_message("suite", name, list(suites)))
    return suites[name]


def load_suites(path: Path | None = None) -> dict[str, Suite]:
    """Return the suites of a file by name, by default of the built-in one.

    Raises:
        ScenarioError: one line an error, with file and line, the key, and what is allowed; a run whose scenario is
            refused with its options is one, too.
    """
    path = path or suites_file()
    source = parse_yaml(text_of(path, str(path)), path.name)
    if not source.problems and not isinstance(source.data, dict):
        source.problems.append(Problem((), "must be a mapping from names to suites"))
    suites = {} if source.problems else {str(name): suite for name in source.data if (suite := _suite(source, name))}
    if source.problems:
        raise refusal(source)
    return suites


def _suite(source: Source, name: str) -> Suite | None:
    """Return one suite; its errors are added to the problems of the source."""
    try:
        suite = Suite.model_validate(source.data[name])
    except ValidationError as error:
        source.problems += problems_of(Suite, error, at=(name,))
        return None
    for number, run in enumerate(suite.runs):
        try:
            load_scenario(run.scenario, options(run.driver, run.planted_bugs, run.set))
        except ScenarioError as error:
            source.problems += [Problem((name, "runs", number), line) for line in str(error).splitlines()]
    return suite
