"""Makes the pages of this package: all values are escaped, and a missing one is an error."""

from collections.abc import Callable
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template, select_autoescape
from markupsafe import Markup


def template(name: str, **filters: Callable[..., Any]) -> Template:
    """Return a template with the filters of this package."""
    environment = Environment(
        loader=PackageLoader("harness.report"),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= filters
    return environment.get_template(name)


def part(name: str) -> Markup:
    """Return a style sheet or a script unchanged, for inclusion in a page."""
    return Markup((files(__package__) / "templates" / name).read_text(encoding="utf-8"))  # noqa: S704 - a file of ours
