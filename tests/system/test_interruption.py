import asyncio
import os
import signal
import threading

import pytest

from harness.errors import Interrupted
from harness.system.interruption import ALL_SIGNALS, Background, Interrupts, between_steps
from tests.raising import raising


def send(number: signal.Signals, times: int = 1) -> None:
    for _ in range(times):
        os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_what_runs_and_lets_it_clean_up(number: signal.Signals) -> None:
    cleaned = []

    async def work() -> None:
        try:
            send(number)
            await asyncio.sleep(10)
        finally:
            await asyncio.sleep(0.01)
            cleaned.append("yes")

    with Interrupts() as interrupts, pytest.raises(Interrupted):
        interrupts.run(work())
    assert cleaned == ["yes"]


def test_a_second_signal_ends_the_cleaning_up_too_however_long_it_takes() -> None:
    reached = []

    async def work() -> None:
        try:
            send(signal.SIGINT)
            await asyncio.sleep(10)
        finally:
            send(signal.SIGINT)
            try:
                await asyncio.sleep(10)
            finally:
                reached.append("first step")
                await asyncio.sleep(10)
                reached.append("second step")

    with Interrupts() as interrupts, pytest.raises(Interrupted):
        interrupts.run(work())
    assert reached == ["first step"]


@pytest.mark.parametrize(
    ("tolerated", "signals", "ends"),
    [
        pytest.param(1, 1, True, id="the first is let pass"),
        pytest.param(1, 2, False, id="the second is not"),
        pytest.param(ALL_SIGNALS, 5, True, id="none is enough"),
    ],
)
def test_tolerated_signals(tolerated: float, signals: int, ends: bool) -> None:
    async def work() -> str:
        send(signal.SIGTERM, signals)
        await asyncio.sleep(0.05)
        return "done"

    with Interrupts() as interrupts:
        if ends:
            assert interrupts.run(work(), tolerated=tolerated) == "done"
        else:
            with pytest.raises(Interrupted):
                interrupts.run(work(), tolerated=tolerated)
        assert interrupts.count == signals


def test_signals_of_an_earlier_phase_count() -> None:
    async def work() -> str:
        send(signal.SIGINT)
        await asyncio.sleep(0.05)
        return "done"

    with Interrupts() as interrupts:
        interrupts.run(work(), tolerated=1)
        with pytest.raises(Interrupted):
            interrupts.run(work(), tolerated=1)


def test_between_two_phases_a_signal_is_a_keyboard_interrupt() -> None:
    with pytest.raises(KeyboardInterrupt), Interrupts():
        send(signal.SIGTERM)


def test_the_handlers_of_before_are_back_afterwards() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with Interrupts():
        assert signal.getsignal(signal.SIGTERM) is not before[1]
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


@pytest.mark.parametrize(
    ("signals", "done"),
    [
        pytest.param(1, ["first step"], id="one waits until the step is done"),
        pytest.param(2, [], id="a second one waits for nothing"),
    ],
)
def test_between_steps_signals_are_let_in(signals: int, done: list[str]) -> None:
    steps = []

    def walk() -> None:
        with between_steps() as let_in:
            send(signal.SIGINT, signals)
            steps.append("first step")
            let_in()
            steps.append("second step")

    with pytest.raises(KeyboardInterrupt):
        walk()
    assert steps == done


def test_a_signal_that_nobody_let_in_comes_after_the_last_step() -> None:
    steps = []

    def walk() -> None:
        with between_steps():
            send(signal.SIGINT)
            steps.append("the only step")

    with pytest.raises(KeyboardInterrupt):
        walk()
    assert steps == ["the only step"]


def test_in_another_thread_it_only_runs_the_work() -> None:
    answers = []

    async def work() -> str:
        return "done"

    def thread() -> None:
        with Interrupts() as interrupts:
            answers.append(interrupts.run(work()))

    running = threading.Thread(target=thread)
    running.start()
    running.join()
    assert answers == ["done"]


def test_an_error_of_the_work_is_its_own() -> None:
    async def work() -> None:
        raise KeyError("x")

    with Interrupts() as interrupts, pytest.raises(KeyError):
        interrupts.run(work())


def test_background_work_answers_or_raises() -> None:
    with Background() as background:
        assert background.run(lambda: threading.current_thread() is threading.main_thread()) is False
        with pytest.raises(KeyError):
            background.run(raising(KeyError("x")))


def test_background_calls_share_a_thread_and_its_resources() -> None:
    seen: list[object] = []

    def note() -> None:
        seen.append(threading.current_thread())

    def first() -> None:
        note()
        background.resources.callback(note)

    with Background() as background:
        background.run(first)
        background.run(note)
        assert len(seen) == 2
    assert len(seen) == 3
    assert len(set(seen)) == 1


def test_a_signal_ends_the_wait_for_background_work() -> None:
    stuck = threading.Event()

    def work() -> None:
        send(signal.SIGINT)
        stuck.wait(120)

    with Interrupts(), pytest.raises(KeyboardInterrupt), Background() as background:
        background.run(work)
    assert not stuck.is_set()
    stuck.set()


@pytest.mark.parametrize(
    ("tolerated", "cut"),
    [
        pytest.param(0, True, id="what may be cut short"),
        pytest.param(1, True, id="what tolerates one signal"),
        pytest.param(ALL_SIGNALS, False, id="what nothing cuts short"),
    ],
)
def test_an_alarm_ends_what_takes_too_long_and_lets_it_clean_up(tolerated: float, cut: bool) -> None:
    done = []

    async def work() -> None:
        try:
            send(signal.SIGALRM)
            await asyncio.sleep(0.01)
            done.append("work")
        finally:
            await asyncio.sleep(0)  # the second cancellation comes with a later turn of the loop, however slow it is
            done.append("cleaned up")

    with Interrupts() as interrupts:
        if cut:
            with pytest.raises(Interrupted):
                interrupts.run(work(), tolerated=tolerated)
        else:
            interrupts.run(work(), tolerated=tolerated)
    assert done == (["cleaned up"] if cut else ["work", "cleaned up"])
