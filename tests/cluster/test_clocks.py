"""Where do lines of a server whose wall clock was set belong on the monotonic clock, and what is libfaketime told?"""

import json
from pathlib import Path

import pytest

from harness.cluster.clocks import SECOND_NS, Clock, Rectified, read_clocks, setting_of

BOOT_S = 1_000_000
"""How far the wall clock is ahead of the monotonic one."""
AHEAD = Clock(since_ns=100 * SECOND_NS, step_s=3600)
BACK = Clock(since_ns=100 * SECOND_NS, step_s=-3600)
SLIGHTLY_AHEAD = Clock(since_ns=100 * SECOND_NS, step_s=30)
FAST = Clock(since_ns=100 * SECOND_NS, rate=1.1)
AS_EVERYBODY = Clock(since_ns=130 * SECOND_NS)


@pytest.mark.parametrize(
    ("clocks", "shown_s", "instants_s"),
    [
        pytest.param([], [5, 6.5], [5, 6.5], id="a clock that was not set"),
        pytest.param([AHEAD, AS_EVERYBODY], [99, 3700, 3729, 131], [99, 100, 129, 131], id="an hour ahead"),
        pytest.param([BACK, AS_EVERYBODY], [99, -3500, -3471, 131], [99, 100, 129, 131], id="an hour back"),
        pytest.param([AHEAD], [99.5, 100.01, 3700.5], [99.5, 100.01, 100.5], id="a line that came a little late"),
        pytest.param(
            [SLIGHTLY_AHEAD, AS_EVERYBODY],
            [99, 131, 150, 159, 131, 150],
            [99, 101, 120, 129, 131, 150],
            id="what it shows once more, it showed before",
        ),
        pytest.param([FAST, AS_EVERYBODY], [99, 111, 132, 131], [99, 110, 100 + 32 / 1.1, 131], id="too fast"),
        pytest.param([AHEAD], [99, 3705, 3704.99], [99, 105, 104.99], id="lines that are slightly out of order"),
    ],
)
def test_a_line_has_the_instant_at_which_its_clock_showed_that(
    clocks: list[Clock], shown_s: list[float], instants_s: list[float]
) -> None:
    rectified = Rectified(clocks, BOOT_S * SECOND_NS)
    instants = [rectified.instant_ns(round((BOOT_S + shown) * SECOND_NS)) / SECOND_NS for shown in shown_s]
    assert instants == pytest.approx(instants_s, abs=1e-6)


@pytest.mark.parametrize(
    ("clock", "started_s", "text"),
    [
        pytest.param(None, 5, "+0 x1\n", id="as the machine's"),
        pytest.param(AHEAD, 40, "+3600.000000 x1.000000\n", id="a step, whenever the process was started"),
        pytest.param(
            FAST, 40, "-6.000000 x1.100000\n", id="a drift begins when the clock was set, not with the process"
        ),
        pytest.param(FAST, 120, "+2.000000 x1.100000\n", id="a process that is started later has the drift so far"),
    ],
)
def test_libfaketime_is_told_what_a_process_shows_at_its_start(clock: Clock | None, started_s: int, text: str) -> None:
    assert setting_of(clock, started_s * SECOND_NS) == text


def test_only_what_was_done_to_a_processs_own_clock_is_read(tmp_path: Path) -> None:
    def event(name: str, kind: str = "clock_set", step_s: float = 0) -> str:
        return json.dumps({"event": kind, "name": name, "since_ns": 7, "step_s": step_s, "rate": 1.0})

    events = tmp_path / "supervisor.jsonl"
    lines = [event("broker-1", step_s=5), event("broker-2"), event("broker-1", "paused"), event("broker-1")]
    events.write_text("\n".join(lines))
    assert read_clocks(events, "broker-1") == [Clock(since_ns=7, step_s=5.0), Clock(since_ns=7)]
