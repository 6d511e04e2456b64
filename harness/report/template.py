"""How the pages of this room are made: whatever is shown is escaped, and what is missing is an error."""

from collections.abc import Callable
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template, select_autoescape


def template(name: str, **filters: Callable[..., Any]) -> Template:
    """Return a template with filters of its own."""
    environment = Environment(
        loader=PackageLoader("harness.report"),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= filters
    return environment.get_template(name)
