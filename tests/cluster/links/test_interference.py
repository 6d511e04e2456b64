"""Interference on links, and what passes as it changes."""

import asyncio
from contextvars import copy_context
from functools import partial

from harness.cluster.capabilities import Rhythm, Slowness
from harness.cluster.links.interference import Interference
from harness.cluster.links.links import Links, Pipe
from harness.simulation.loop import run

Came = list[tuple[float, str]]
"""What came out of pipes, each with the instant."""


async def test_a_link_that_its_holder_cuts_again_lets_nothing_pass_meanwhile() -> None:
    links, arrived = Links(), list[str]()
    interference = Interference(links)
    pipes = [Pipe(links, "a", receiver, arrived.append, copy_context()) for receiver in ("b", "c")]
    interference.cut("one", [("a", "b"), ("a", "c")], at_most_s=60)
    for pipe in pipes:
        pipe.put("waits")
    interference.cut("one", [("a", "b")], at_most_s=60)
    await asyncio.sleep(0)
    assert arrived == ["waits"], "only over the link that is not cut again"
    interference.release("one")
    await asyncio.sleep(0)
    assert arrived == ["waits", "waits"]


def pipes_to(links: Links, came: Came, *names: str) -> list[Pipe]:
    """Return pipes from a to b, of which each says its name before what comes out of it, and the seconds since now."""
    now_s = asyncio.get_running_loop().time()

    def arrived(name: str, item: bytes) -> None:
        came.append((round(asyncio.get_running_loop().time() - now_s, 6), name + item[:1].decode()))

    return [Pipe(links, "a", "b", partial(arrived, name), copy_context()) for name in names]


def test_over_a_link_with_a_rate_connections_take_turns_and_each_keeps_its_order() -> None:
    async def story() -> None:
        links, came = Links(), Came()
        Interference(links).slow("one", [("a", "b")], Slowness(extra_s=0.5, bytes_per_s=100), at_most_s=60)
        one, other = pipes_to(links, came, "one", "other")
        for item in (b"1" * 100, b"2" * 50):
            one.put(item)
        other.put(b"3" * 100)
        await asyncio.sleep(60)
        assert came == [(1.5, "one1"), (2.5, "other3"), (3.0, "one2")]

    run(story())


def test_when_a_rate_is_lifted_all_that_waits_comes_at_once_in_its_order() -> None:
    async def story() -> None:
        links, came = Links(), Came()
        interference = Interference(links)
        interference.slow("one", [("a", "b")], Slowness(bytes_per_s=1), at_most_s=3)
        (pipe,) = pipes_to(links, came, "")
        for item in (b"1", b"2" * 100, b"3" * 100):
            pipe.put(item)
        await asyncio.sleep(10)
        assert came == [(1.0, "1"), (3.0, "2"), (3.0, "3")]

    run(story())


def test_over_a_cut_link_with_a_rate_nothing_passes_until_it_is_healed() -> None:
    async def story() -> None:
        links, came = Links(), Came()
        interference = Interference(links)
        interference.slow("one", [("a", "b")], Slowness(bytes_per_s=10), at_most_s=60)
        (pipe,) = pipes_to(links, came, "")
        pipe.put(b"1" * 10)
        interference.cut("other", [("a", "b")], at_most_s=5)
        await asyncio.sleep(0.5)
        pipe.put(b"2" * 10)
        await asyncio.sleep(10)
        assert came == [(6.0, "1"), (7.0, "2")]

    run(story())


def test_the_lowest_of_several_rates_counts_and_connections_that_break_make_room() -> None:
    async def story() -> None:
        links, came = Links(), Came()
        interference = Interference(links)
        interference.slow("one", [("a", "b")], Slowness(bytes_per_s=10), at_most_s=60)
        interference.slow("other", [("a", "b")], Slowness(bytes_per_s=20), at_most_s=60)
        broken, pipe = pipes_to(links, came, "broken", "")
        broken.put(b"x" * 10)
        broken.put(b"y" * 1000)
        pipe.put(b"1" * 10)
        broken.break_off()
        await asyncio.sleep(5)
        assert came == [(2.0, "1")], "what was passing when its connection broke takes its time all the same"
        interference.release("one")
        pipe.put(b"2" * 10)
        await asyncio.sleep(5)
        assert came[1:] == [(5.5, "2")]

    run(story())


def test_jitter_is_drawn_for_everything_and_the_order_stays() -> None:
    async def story() -> None:
        links, came = Links(), Came()
        Interference(links).slow("one", [("a", "b")], Slowness(extra_s=1, jitter_s=1), at_most_s=60)
        (pipe,) = pipes_to(links, came, "")
        for number in range(5):
            pipe.put(str(number).encode())
        await asyncio.sleep(10)
        assert [name for _, name in came] == list("01234")
        assert all(1 <= instant_s <= 2 for instant_s, _ in came)
        assert len({links.delay_s(("a", "b")) for _ in range(5)}) == 5

    run(story())


def test_a_cut_with_a_rhythm_comes_and_goes_and_ends_whole() -> None:
    async def story() -> None:
        links = Links()
        interference = Interference(links)
        interference.cut("one", [("a", "b")], at_most_s=7, rhythm=Rhythm(cut_s=2, whole_s=1))
        passes = []
        for _ in range(9):
            await asyncio.sleep(0.5)
            passes.append(links.passes(("a", "b")))
            await asyncio.sleep(0.5)
        assert passes == [False, False, True, False, False, True, False, True, True]

    run(story())


def test_a_link_that_rests_for_one_is_cut_for_another_and_a_steady_cut_takes_the_place_of_a_rhythm() -> None:
    async def story() -> None:
        links = Links()
        interference = Interference(links)
        rhythm = Rhythm(cut_s=1, whole_s=1)
        interference.cut("one", [("a", "b")], at_most_s=60, rhythm=rhythm)
        interference.cut("other", [("a", "b")], at_most_s=60)
        await asyncio.sleep(1.5)
        assert not links.passes(("a", "b"))
        interference.release("other")
        assert links.passes(("a", "b"))
        interference.cut("one", [("a", "b")], at_most_s=60)
        for _ in range(3):
            await asyncio.sleep(1)
            assert not links.passes(("a", "b"))
        interference.release("one")
        assert links.passes(("a", "b"))

    run(story())
