"""The reference of the command line: every command with its arguments and options."""

from collections.abc import Iterator
from typing import Any

import typer

from harness.cli.app import EXIT_CODES, app
from tools.pages.page import NOTE, Page

_HEAD = f"""\
# Command line

{NOTE}

`chaos COMMAND --help` prints the same. {EXIT_CODES}"""
_EVERYWHERE = frozenset({"help", "version", "install_completion", "show_completion"})


def text() -> str:
    """Return the page as Markdown."""
    return "\n".join([_HEAD, *_commands(typer.main.get_command(app), "chaos")]) + "\n"


def _commands(command: Any, name: str) -> Iterator[str]:
    if commands := getattr(command, "commands", None):
        for child, each in commands.items():
            yield from _commands(each, f"{name} {child}")
        return
    yield ""
    yield f"## {name}"
    yield ""
    example = (command.epilog or "").removeprefix("Example: ").strip()
    yield " ".join([*(command.help or "").split(), *([f"Example: `{example}`"] if example else [])])
    parameters = [each for each in command.params if each.name not in _EVERYWHERE]
    if parameters:
        yield ""
        yield from map(_parameter, parameters)


def _parameter(each: Any) -> str:
    """Return how a parameter is written and what it means; Typer's own classes have no public types."""
    is_option = each.param_type_name == "option"
    name = ", ".join(f"`{option}`" for option in each.opts) if is_option else f"`{each.name.upper()}`"
    about, default = each.help or "", each.default
    shown = not callable(default) and default not in (None, False, (), [])
    return f"- {name}: {about} Default: {default}." if shown else f"- {name}: {about}"


PAGES = (Page(path="docs/reference/cli.md", text=text),)
