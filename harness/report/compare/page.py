"""The page of a comparison: one HTML file without scripts that opens offline."""

from collections.abc import Callable, Sequence

from harness.report.compare.comparison import Comparison
from harness.report.template import part, template


def render(comparisons: Sequence[Comparison], link: Callable[[str], str] = lambda _: "", *, back: str = "") -> str:
    """Return the page; `link` gives the address of a run, or nothing; `back` is the address of their list."""
    return template("compare.html.j2").render(css=part("page.css"), comparisons=comparisons, link=link, back=back)
