"""The reference of draws: what a seed may draw, from the catalogues."""

from collections.abc import Iterator

from harness.contracts import registry
from harness.contracts.moments import MOMENTS
from harness.contracts.parameters import Draw
from harness.contracts.registry import Kind
from harness.scenario.draws import MEANS_MS, OF_LATENCY, OF_LOAD, OF_TOPIC
from harness.scenario.model import Latencies
from harness.scenario.motifs import MOTIFS, MotifStep
from harness.scenario.settings import SETTINGS, Setting
from tools.pages.page import NOTE, Page

_HEAD = f"""\
# Draws

{NOTE}

What a seed may draw with [`draws`](../how-to/write-a-scenario.md#draw-sizes-settings-load-and-latencies).
`chaos plan` shows the draws of a seed, and `plan.json` holds them. What the scenario states is not drawn, and a draw
outside its bounds is not made."""


_MOMENTS = """\
What a fault can wait for with `after`, from its instant on and `within_s` at most; then it is injected without it. With
`mix.moments` a share of the drawn faults waits for one of those that the system logs."""
_MOTIFS = """\
Several faults that a mix draws whole, with `mix.motifs` by name or `all`, where the driver and the system allow it."""


def page() -> str:
    """Return the page as Markdown."""
    lines = [_HEAD, "", "## Settings", "", _settings_head(), "", *_settings(), "", "## Load", "", _load_head(), ""]
    lines += [*_load(), "", "## Latencies", "", _latencies_head(), "", *_latencies()]
    lines += ["", "## Moments", "", _MOMENTS, "", *_moments(), "", "## Motifs", "", _MOTIFS, "", *_motifs()]
    return "\n".join(lines) + "\n"


def _settings_head() -> str:
    return (
        "The groups of `draws.settings`. *Odds* says how often a property of the brokers is drawn at all; each topic"
        f"\nhas a value of its own with odds {OF_TOPIC:g}, where a topic may have one. What Kafka without ZooKeeper"
        "\nrefuses is not drawn for it."
    )


def _settings() -> Iterator[str]:
    yield "| group | property | topic's | values | odds | bounds | drawn for |"
    yield "|---|---|---|---|---|---|---|"
    for each in SETTINGS:
        topic = f"`{each.topic}`" if each.topic else ""
        odds, bounds = f"{each.odds:g}", _bounds(each)
        if each.of_policy:
            odds, bounds = "0", f"topics of their own policy `{each.of_policy}`"
        cells = [each.group, f"`{each.name}`", topic, each.values.described(), odds, bounds]
        with_zookeeper = "" if each.quorum else "brokers with ZooKeeper"
        drawn_for = with_zookeeper if each.kafka else "the built-in broker"
        yield f"| {' | '.join(cells)} | {drawn_for} |"


def _bounds(setting: Setting) -> str:
    of = {"at most": setting.at_most, "at least": setting.at_least}
    return ", ".join(
        f"{word} {'' if each.share == 1 else f'{each.share:g} of '}{each.name}" for word in of for each in of[word]
    )


def _load_head() -> str:
    return f"Parameters of workloads that `draws.load` draws, each with odds {OF_LOAD:g}."


def _load() -> Iterator[str]:
    yield "| workload | parameter | values |"
    yield "|---|---|---|"
    for name in registry.names(Kind.WORKLOAD):
        for parameter, info in registry.workload(name).Parameters.model_fields.items():
            for draw in (each for each in info.metadata if isinstance(each, Draw)):
                values = ", ".join(dict.fromkeys(map(str, draw.choices)))
                yield f"| {name} | `{parameter}` | {values} |"


def _latencies_head() -> str:
    return (
        f"Mean times that `draws.latencies` draws for a schedule in virtual time, each with odds {OF_LATENCY:g}; every"
        "\noperation then draws its own time, exponentially. A scenario can state them under `latencies`."
    )


def _latencies() -> Iterator[str]:
    yield "| mean | of | values |"
    yield "|---|---|---|"
    for name, values in MEANS_MS.items():
        about = Latencies.model_fields[name].description
        yield f"| `{name}` | {about} | {', '.join(f'{value:g}' for value in values)} |"


def _moments() -> Iterator[str]:
    yield "| moment | what a broker logs |"
    yield "|---|---|"
    for name, moment in MOMENTS.items():
        yield f"| `{name}` | {moment.meaning} |"


def _motifs() -> Iterator[str]:
    yield "| motif | what happens | faults |"
    yield "|---|---|---|"
    for name, motif in MOTIFS.items():
        yield f"| `{name}` | {motif.about} | {'; '.join(map(_step, motif.steps))} |"


def _step(step: MotifStep) -> str:
    when = f"{step.offset_s:g} s after `{step.after}`" if step.after else f"at {step.delay_s:g} s"
    return f"`{step.kind}` {when}{', overlapping' if step.overlaps else ''}"


PAGES = (Page(path="docs/reference/draws.md", text=page),)
