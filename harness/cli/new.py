"""`chaos new`: a plugin of your own and its test, which passes as it is."""

import re
from enum import StrEnum
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from harness.cli.options import folder_to_make
from harness.errors import ScenarioError

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


class Made(StrEnum):
    """What `chaos new` writes."""

    CHECK = "check"
    FAULT = "fault"
    WORKLOAD = "workload"


def new(
    kind: Annotated[Made, typer.Argument(help="What to write.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name: small letters, digits and hyphens.")],
    folder: Annotated[
        Path,
        typer.Option(
            "--into",
            metavar="FOLDER",
            callback=folder_to_make,
            help="Folder or package to write into; scenarios beside a folder `plugins` use it.",
        ),
    ] = Path("plugins"),
) -> None:
    """Write a check, a fault or a workload of your own, and a test of it.

    The plugin works, so that the test passes at once. Change it from there.
    """
    from harness.contracts.registry import Kind, known

    of_kind = Kind(f"{kind.value}s")
    if not NAME.fullmatch(name):
        raise ScenarioError(
            f"{name!r} is not a name of a plugin: use small letters, digits and hyphens, for example slow-disk"
        )
    if known(of_kind, name):
        raise ScenarioError(f"there is a {kind.value} {name} already; `chaos list {of_kind}` names all")
    module = name.replace("-", "_")
    plugin, test = folder / of_kind / f"{module}.py", folder / "tests" / f"test_{module}_{kind.value}.py"
    words = {"name": name, "class_name": "".join(part.capitalize() for part in name.split("-")), "kind": kind.value}
    for path in filter(Path.exists, (plugin, test)):
        raise ScenarioError(f"{path} exists already")
    for path, template in ((plugin, f"{kind.value}.py.txt"), (test, f"test_{kind.value}.py.txt")):
        text = Template(_template(template)).substitute(words)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        typer.echo(path)
    typer.echo(f"Test it: pytest {test}")
    typer.echo(f"Test its contract: pytest --pyargs kafka_chaos.conformance --chaos-plugins {folder.absolute()}")


def _template(name: str) -> str:
    return (Path(__file__).with_name("new_templates") / name).read_text(encoding="utf-8")
