"""How many checks judge which runs? The numbers in pages that are written by hand."""

import re
from collections.abc import Mapping
from functools import cache, partial

from harness.analysis.sources.lineage import LINEAGE
from harness.contracts import registry
from harness.contracts.registry import Kind
from harness.judging.needs import answerable
from harness.scenario.file import load_scenario
from tools.pages.page import ROOT, Page

OLDER = "kafka:0.10.2.2"
JUDGED = (OLDER, "kafka:3.9.1", "kafka:4.4.0")
SENTENCES: Mapping[str, str] = {
    "README.md": f"All {{all}} checks judge the built-in broker. Apache Kafka logs less: {{kafka:3.9.1}} judge 3.9.1, "
    f"{{kafka:4.4.0}} judge 4.4.0, {{{OLDER}}} older releases.",
    "docs/how-to/test-your-kafka.md": "How many of the {all} checks apply depends on what a release logs: "
    f"{{kafka:3.9.1}} on 3.9.1, {{kafka:4.4.0}} on 4.4.0, {{{OLDER}}} on older releases.",
    "docs/how-to/judge-a-history.md": "Start with them: {operations} checks need only `--operations`.",
}
"""The sentence of each page, with the name of a number in braces; its words may stand on several lines."""


@cache
def counts() -> Mapping[str, int]:
    """Return the numbers: of all checks, of those that need operations alone, and of those that judge a system."""
    checks = [registry.check(name) for name in registry.names(Kind.CHECK)]
    alone = [
        check
        for check in checks
        if all("operations" in LINEAGE[fact] for fact in check.needs)
        and (check.about is None or check.about.evidence in ("", "operations"))
    ]
    return {
        "all": len(checks),
        "operations": len(alone),
        **{system: len(checks) - unjudged(system) for system in JUDGED},
    }


def unjudged(system: str) -> int:
    """Return how many checks do not judge runs of a system."""
    smoke = load_scenario("smoke").model_copy(update={"driver": "process", "system": system})
    return len(answerable(smoke).without_evidence)


def text(path: str) -> str:
    """Return a page with the numbers of today.

    Raises:
        ValueError: the page has no such sentence.
    """
    page = (ROOT / path).read_text(encoding="utf-8")
    words = [re.escape(word) for word in SENTENCES[path].split()]
    pattern = re.compile(r"\s+".join(re.sub(r"\\\{(\S+)\\\}", r"(\\d+)", word) for word in words))
    found = pattern.search(page)
    if found is None:
        raise ValueError(f"{path}: a sentence must read: {SENTENCES[path]}")
    names = re.findall(r"\{(\S+)\}", SENTENCES[path])
    for number, name in reversed([*enumerate(names, 1)]):
        page = page[: found.start(number)] + str(counts()[name]) + page[found.end(number) :]
    return page


PAGES = tuple(Page(path=path, text=partial(text, path)) for path in SENTENCES)
