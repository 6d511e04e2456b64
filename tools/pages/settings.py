"""Makes `docs/settings.md`, what becomes of each of Kafka's properties: `python -m tools.pages`."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.broker.configs.config import PROPERTIES
from harness.broker.configs.config_types import Property
from harness.broker.configs.refused import REFUSED, REFUSED_FAMILIES
from harness.broker.configs.topic_properties import DYNAMIC, TOPIC_PROPERTIES, TopicProperty
from tests.broker.configs.effects import OF_BROKERS, OF_TOPICS

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"
INTRODUCTION = """# Settings

<!-- Made by `python -m tools.pages`, never written by hand. -->

A broker takes Kafka's properties by Kafka's names, types and defaults (3.9, ZooKeeper mode). Each of them works, does
not matter here, or is refused by name when the broker starts, with the reason and what to do. A name that Kafka does
not know either is refused too, with the nearest one that it knows. `tests/broker/configs/test_every_property.py` holds
this page to what a broker of Kafka 3.9 says of itself, and to the tests that show what each property does.
"""


def page() -> str:
    """Return the page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield INTRODUCTION
    yield "## Broker properties that work\n"
    yield from _table(("property", "default", "may change while it runs", "shown by"), _working(PROPERTIES, OF_BROKERS))
    yield "\n## Topic properties that work\n"
    rows = (
        (f"`{each.name}`", _inherits(each), _test(each.name, OF_TOPICS)) for each in TOPIC_PROPERTIES if not each.idle
    )
    yield from _table(("property", "inherits", "shown by"), rows)
    yield "\n## Accepted without effect\n"
    yield "A value other than the default is refused where it would ask for what is not there.\n"
    idle: list[Property | TopicProperty] = [
        *PROPERTIES,
        *(each for each in TOPIC_PROPERTIES if each.name not in {prop.name for prop in PROPERTIES}),
    ]
    yield from _table(("property", "why"), ((f"`{each.name}`", each.idle) for each in idle if each.idle))
    yield "\n## Refused\n"
    families = {f"{family}*": why for family, why in REFUSED_FAMILIES.items()}
    yield from _table(
        ("property", "why, and what to do"), ((f"`{n}`", why) for n, why in sorted({**REFUSED, **families}.items()))
    )


def _working(properties: Iterable[Property], tests: dict[str, str]) -> Iterator[tuple[str, ...]]:
    for each in sorted(properties, key=lambda prop: prop.name):
        if not each.idle:
            default = f"`{each.default}`" if each.default else "must be given" if each.default is None else ""
            yield f"`{each.name}`", default, "yes" if each.name in DYNAMIC else "", _test(each.name, tests)


def _inherits(prop: TopicProperty) -> str:
    return ", ".join(f"`{name}`" for name, _ in prop.brokers)


def _test(name: str, tests: dict[str, str]) -> str:
    module, _, function = tests[name].partition("::")
    return f"[{function}](../{module})"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|---" * len(head) + "|"
    for row in rows:
        yield f"| {' | '.join(row)} |"
