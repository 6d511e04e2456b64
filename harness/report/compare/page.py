"""The page of a comparison: one HTML file without scripts that opens offline."""

from collections.abc import Sequence

from harness.report.compare.comparison import Comparison
from harness.report.template import part, template


def render(comparisons: Sequence[Comparison]) -> str:
    """Return the page."""
    return template("compare.html.j2").render(css=part("page.css"), comparisons=comparisons)
