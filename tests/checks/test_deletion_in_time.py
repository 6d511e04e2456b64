from dataclasses import replace
from typing import Any

from tests.analysis.fact_rows import Row, controller
from tests.analysis.protocol_rows import S, deletion, injected, registered
from tests.checks.answers import STRICT, Case, fails, passes, table_of

SETTINGS = replace(STRICT, session_timeout_ms=4_000)


def cluster(
    *rows: Row, went_s: float = 5, came_s: float = 12, done_s: float = 34, left_s: float | None = None, **other: Any
) -> list[Row]:
    """A topic on brokers 1 and 2 is to be deleted at 10 s, broker 2 comes at `came_s`, and it is gone at `done_s`."""
    left = {} if left_s is None else {"left_ns": int(left_s * S)}
    return [
        deletion(until_ns=int(done_s * S), **other),
        registered(1, 11, time_ns=0),
        registered(2, 12, time_ns=0, until_ns=int(went_s * S)),
        registered(2, 13, time_ns=int(came_s * S)),
        controller(3, 1, zxid=5, time_ns=0, **left),
        *rows,
    ]


def in_time(*rows: Row, **when: Any) -> Case:
    return passes(*cluster(*rows, **when), settings=SETTINGS)


def late(*rows: Row, text: str = "", **when: Any) -> Case:
    return fails(*cluster(*rows, **when), settings=SETTINGS, text=text)


CASES = {
    "it ends within the session time-out and 30 s": in_time(done_s=46),
    "it takes longer": late(
        done_s=46.5,
        text="orders was still to be deleted after 34.5 s in which controller 3 was in office and the brokers with its "
        "replicas, [1, 2], were all alive, and the limit is 34 s",
    ),
    "it takes the least bit longer": late(done_s=46.000000001),
    "nothing asks for a deletion": passes(
        registered(1, 11, time_ns=0), controller(3, 1, zxid=5, time_ns=0), settings=SETTINGS
    ),
    "a broker is away until shortly before": in_time(came_s=40, done_s=60),
    "a broker never comes": in_time(came_s=90, done_s=60),
    "a broker goes again": in_time(registered(1, 14, time_ns=50 * S), done_s=60, came_s=40),
    "a broker asks to leave": in_time(
        registered(4, 14, time_ns=0, leaves_ns=30 * S), replicas=[1, 2, 4], done_s=60, came_s=12
    ),
    "a broker asks to leave, and its registration ends much later": in_time(
        registered(4, 14, time_ns=0, leaves_ns=30 * S, until_ns=55 * S), replicas=[1, 2, 4], done_s=60
    ),
    "one broker goes, and another one much later": in_time(
        registered(4, 14, time_ns=0, until_ns=30 * S),
        registered(5, 15, time_ns=0, until_ns=55 * S),
        replicas=[1, 2, 4, 5],
        done_s=60,
    ),
    "a registration follows at once on the last one": late(went_s=12, done_s=60, text="after 48.0 s"),
    "a broker goes too late, and when it is there again the deletion waits even longer": late(
        registered(4, 14, time_ns=0, until_ns=47 * S),
        registered(4, 15, time_ns=50 * S),
        replicas=[1, 2, 4],
        done_s=90,
        text="after 40.0 s",
    ),
    "another broker goes": late(registered(4, 14, time_ns=0, until_ns=30 * S), done_s=60, text="after 48.0 s"),
    "another broker is away": late(registered(4, 14, time_ns=0, until_ns=S), done_s=60),
    "it is being reassigned": in_time(done_s=60, reassigned=True),
    "a reassignment has just ended": in_time(done_s=60, assigned_ns=37 * S),
    "a reassignment ended long ago": late(done_s=60, assigned_ns=25 * S, text="after 35.0 s"),
    "it has no replica": in_time(done_s=60, replicas=[]),
    "its assignment is unknown": in_time(done_s=60, replicas=None),
    "when it was asked for is unknown": in_time(done_s=60, time_ns=None),
    "the controller leaves, and another one comes": in_time(
        controller(2, 2, zxid=6, time_ns=36 * S), left_s=35, done_s=60
    ),
    "the next controller does not delete it either": late(
        controller(2, 2, zxid=6, time_ns=36 * S), left_s=35, done_s=71, text="after 35.0 s in which controller 2"
    ),
    "a broker says itself that it is controller": passes(
        *[row for row in cluster(done_s=60) if row[0] != "controller_epochs"],
        controller(3, 1, zxid=None, time_ns=0),
        settings=SETTINGS,
    ),
    "a disturbing fault comes and goes": in_time(injected(fault="isolate", intended_ns=30 * S, healed_s=35), done_s=60),
    "a disturbing fault stays": in_time(injected(fault="isolate", intended_ns=30 * S, healed_s=None), done_s=90),
    "a broker comes while a disturbing fault is in force": in_time(
        injected(fault="isolate", intended_ns=30 * S, healed_s=None), came_s=40, done_s=90
    ),
    "when a disturbing fault began is unknown": in_time(
        injected(fault="isolate", intended_ns=None, injected_ns=None, healed_s=35), done_s=60
    ),
    "a disturbing fault is in force, and one was over long ago": in_time(
        injected(fault="isolate", intended_ns=1 * S, healed_s=2),
        injected(injection=1, fault="isolate", intended_ns=11 * S, healed_s=35),
        done_s=60,
    ),
    "one disturbing fault follows another": in_time(
        injected(fault="isolate", intended_ns=30 * S, healed_s=31),
        injected(injection=1, fault="isolate", intended_ns=50 * S, healed_s=51),
        done_s=70,
    ),
    "a disturbing fault was there before": late(
        injected(fault="isolate", intended_ns=8 * S, healed_s=20), done_s=60, text="after 38.0 s"
    ),
    "a disturbing fault comes later": late(injected(fault="isolate", intended_ns=47 * S, healed_s=48), done_s=60),
    "a fault that disturbs nothing is in force": late(
        injected(fault="kill", intended_ns=8 * S, healed_s=70), done_s=60
    ),
    "a disk of one of its brokers fails": in_time(
        injected(fault="disk-error", targets=["2"], intended_ns=8 * S, healed_s=70), done_s=60
    ),
    "a disk of another broker fails": late(
        injected(fault="disk-error", targets=["3"], intended_ns=8 * S, healed_s=70), done_s=60
    ),
}

CASES |= CASES["it takes longer"].without_each("registrations", "controller_epochs")

test_when_deletions_end = table_of("deletion-in-time", CASES)
