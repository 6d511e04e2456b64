"""Situations of consumer groups, request by request: what does a coordinator answer, and what is in its log?

`groups-3.9.json` has what Kafka 3.9 answered, three brokers with `PROPERTIES` and an empty topic `orders`, to
`python -m tools.side_by_side.groups`. A test plays the same to this broker.
"""

import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from harness.broker.wire import messages as m
from harness.broker.wire.tcp import TcpTransport
from harness.broker.wire.transport import PeerError, Transport
from tools.peers import create_topic, running
from tools.side_by_side.group_script import SUBSCRIPTION, TIMEOUT_S, TOPIC, Script
from tools.side_by_side.group_versions import every_version

RECORDED = Path(__file__).with_name("groups-3.9.json")

PROPERTIES = {"group.min.session.timeout.ms": "1000", "group.initial.rebalance.delay.ms": "0"}
EXPIRED_S = 1.5
"""In this time expired offsets are looked for in the situations that are about them."""

ELSEWHERE = (("range", b"\0\0\0\0\0\1\0\6others\xff\xff\xff\xff"),)

Situation = Callable[[Script], Awaitable[None]]


def owning(*partitions: int) -> tuple[tuple[str, bytes]]:
    """Return the protocols of a member that says what it has of the topic, as cooperative consumers do."""
    name = TOPIC.encode()
    owned = b"".join(partition.to_bytes(4) for partition in partitions)
    of_topic = len(name).to_bytes(2) + name + len(partitions).to_bytes(4) + owned
    subscription = SUBSCRIPTION.replace(b"\0\0", b"\0\1", 1)
    return (("cooperative-sticky", subscription + (1).to_bytes(4) + of_topic),)


async def one_member(s: Script) -> None:
    """A member joins, has its assignment, commits and leaves."""
    await s.join()
    await s.list()
    await s.describe()
    await s.join("m1")
    await s.describe()
    await s.sync("m1", 1, {"m1": b"all"})
    await s.describe()
    for states in ((), ("Stable",), ("stable", "Empty"), ("Dead",)):
        await s.list(*states)
    await s.heartbeat("m1", 1)
    await s.commit(5, "m1", 1)
    await s.sync("m1", 1)
    await s.leave(("m1", None))
    await s.describe()
    await s.committed()
    await s.commit(6)
    await s.log()


async def old_clients(s: Script) -> None:
    """Clients from before KIP-394 are members at once; from before KIP-62 their session is all the time they have."""
    await s.join(version=0, rebalance_ms=77)
    await s.sync("m1", 1, {"m1": b"a"}, version=0)
    await s.leave(("m1", None), version=0)
    await s.leave(("m1", None), version=0)
    await s.join(version=3)
    await s.log()


async def second_member(s: Script) -> None:
    """A second member comes: the first one is told, both join again, and the leader assigns."""
    await s.stable()
    second = await s.member()
    await s.until_preparing()
    await s.heartbeat("m1", 1)
    await s.commit(5, "m1", 1)
    await s.sync("m1", 1)
    await s.describe()
    first, joined = await asyncio.gather(s.join("m1", quietly=True), second)
    s.say(s.joined(first, "m1"))
    s.say(s.joined(joined, "m2"))
    await s.heartbeat("m2", 2)
    await s.commit(6, "m2", 2)
    await s.describe()
    waiting = asyncio.create_task(s.sync("m2", 2, quietly=True))
    await s.sync("m1", 2, {"m1": b"one", "m2": b"two"})
    s.say(f"sync m2: {(await waiting).assignment!r}")
    await s.commit(7, "m2", 2)
    await s.log()


async def cooperative(s: Script) -> None:
    """A member gives partitions up in one generation, and another one has them in the next (KIP-429)."""
    await (await s.member(protocols=owning(0, 1)))
    await s.sync("m1", 1, {"m1": b"both"}, quietly=True)
    second = await s.member(protocols=owning())
    await s.until_preparing()
    await s.commit(5, "m1", 1)
    first, joined = await asyncio.gather(s.join("m1", protocols=owning(0, 1), quietly=True), second)
    s.say(s.joined(first, "m1"))
    s.say(s.joined(joined, "m2"))
    waiting = asyncio.create_task(s.sync("m2", 2, quietly=True))
    await s.sync("m1", 2, {"m1": b"one"})
    s.say(f"sync m2: {(await waiting).assignment!r}")
    await s.commit(6, "m1", 2)
    again = asyncio.create_task(s.join("m1", protocols=owning(0), quietly=True))
    await s.until_preparing()
    await s.heartbeat("m2", 2)
    first, joined = await asyncio.gather(again, s.join("m2", protocols=owning(), quietly=True))
    s.say(s.joined(first, "m1"))
    s.say(s.joined(joined, "m2"))
    waiting = asyncio.create_task(s.sync("m2", 3, quietly=True))
    await s.sync("m1", 3, {"m1": b"one", "m2": b"other"})
    s.say(f"sync m2: {(await waiting).assignment!r}")
    await s.commit(7, "m1", 2)
    await s.commit(7, "m2", 3)
    await s.log()


async def static_bounce_before_handover(s: Script) -> None:
    """An instance that is to give a partition up comes back with nothing: the group goes on, and no member gets it."""
    await (await s.member(instance="a", protocols=owning(0, 1)))
    await s.sync("m1", 1, {"m1": b"both"}, instance="a", quietly=True)
    second = await s.member(instance="b", protocols=owning())
    await s.until_preparing()
    await asyncio.gather(s.join("m1", instance="a", protocols=owning(0, 1), quietly=True), second)
    await asyncio.gather(
        s.sync("m2", 2, instance="b", quietly=True), s.sync("m1", 2, {"m1": b"one", "m2": b"none"}, instance="a")
    )
    await s.join(instance="a", protocols=owning(), version=9)
    await s.sync("m3", 2, instance="a")
    await s.heartbeat("m2", 2, instance="b")
    await s.join("m2", instance="b", protocols=owning(), version=9)
    await s.describe()
    again = asyncio.create_task(s.join("m2", instance="b", protocols=owning(0), quietly=True))
    await s.until_preparing()
    first, joined = await asyncio.gather(s.join("m3", instance="a", protocols=owning(0), quietly=True), again)
    s.say(s.joined(first, "m3"))
    s.say(s.joined(joined, "m2"))
    await s.log()


async def expiry(s: Script) -> None:
    """What was committed for no time goes at the next look, unless a member subscribes to it; then the group goes."""
    await s.commit(5, version=4, retention_ms=0)
    await asyncio.sleep(EXPIRED_S)
    await s.committed()
    await s.describe()
    await s.stable_at_once()
    await s.commit(6, "m1", 1, version=4, retention_ms=0)
    await asyncio.sleep(EXPIRED_S)
    await s.committed()
    await s.leave(("m1", None))
    await asyncio.sleep(EXPIRED_S)
    await s.committed()
    await s.describe()
    await s.list()
    await s.log()


async def id_expires(s: Script) -> None:
    """An id that was never used to join expires, even if its group was described meanwhile."""
    await s.join()
    await asyncio.sleep(EXPIRED_S)
    await s.list()
    await s.join("m1")


async def full(s: Script) -> None:
    """Two members are all that a group may have; while it waits for members, the first ones to come."""
    await s.stable_pair()
    await s.join()
    await s.join(version=3)
    await s.join(instance="i")
    leader = asyncio.create_task(s.join("m1", quietly=True))
    await s.until_preparing()
    third = asyncio.create_task(s.join(version=3, quietly=True))
    await asyncio.sleep(0.5)
    await s.join("m2")
    first, joined = await asyncio.gather(leader, third)
    s.say(s.joined(first, "m1"))
    s.say(s.joined(joined, "m3"))
    await s.heartbeat("m2", 2)
    await s.leave(("m1", None))
    await s.join()


async def refused_joins(s: Script) -> None:
    """Refused joins."""
    await s.join("somebody")
    await s.list()
    await s.join(protocols=())
    await s.join(protocol_type="")
    await s.list()
    for session_ms in (999, 1_800_001):
        await s.join(session_ms=session_ms)
    await s.stable()
    await s.join(protocol_type="connect")
    await s.join(protocols=(("roundrobin", b""),))
    await s.join("m9")
    await s.join("m1", instance="i")
    await s.join(protocols=())
    await s.describe()


async def no_group_id(s: Script) -> None:
    """A group has a name."""
    await s.ask(m.ListGroupsRequest(states_filter=[], types_filter=[]), 4)
    s.group = ""
    await s.join()
    await s.sync("m1", 1)
    await s.heartbeat("m1", 1)
    await s.leave(("m1", None))
    await s.delete_offset()


async def zombies(s: Script) -> None:
    """A client outside this generation commits nothing."""
    await s.stable_pair()
    for member, generation in (("m1", 2), ("m1", 1), ("m1", 3), ("m9", 2), ("", -1), ("m1", -1), ("", 2)):
        await s.commit(5, member, generation)
    await s.heartbeat("m1", 1)
    await s.heartbeat("m9", 2)
    await s.sync("m1", 1)
    await s.sync("m9", 2)
    await s.leave(("m1", None))
    await s.commit(6, "m1", 2)
    await s.committed()


async def static_bounce(s: Script) -> None:
    """An instance that comes back goes on in its generation; its old id is fenced."""
    await (await s.member(instance="i"))
    await s.sync("m1", 1, {"m1": b"all"}, instance="i", quietly=True)
    await s.join(instance="i")
    await s.describe()
    await s.sync("m2", 1, instance="i")
    await s.heartbeat("m1", 1, instance="i")
    await s.heartbeat("m1", 1)
    await s.commit(5, "m1", 1, instance="i")
    await s.sync("m1", 1, instance="i")
    await s.join("m1", instance="i")
    await s.leave(("m1", "i"))
    await s.heartbeat("m2", 1, instance="i")
    await s.heartbeat("m2", 1, instance="j")
    await s.join(instance="i", version=9)
    await s.leave(("", "j"), ("", "i"), ("", None))
    await s.describe()
    await s.log()


async def static_follower_bounce(s: Script) -> None:
    """A static follower that comes back causes no rebalance, unless it changes the protocol."""
    await (await s.member(instance="a"))
    await s.sync("m1", 1, {"m1": b"all"}, instance="a", quietly=True)
    second = await s.member(instance="b")
    await s.until_preparing()
    await asyncio.gather(s.join("m1", instance="a", quietly=True), second)
    await s.describe()
    await asyncio.gather(
        s.sync("m2", 2, instance="b", quietly=True), s.sync("m1", 2, {"m1": b"one", "m2": b"two"}, instance="a")
    )
    await s.join(instance="b", version=9)
    await s.sync("m3", 2, instance="b")
    await s.heartbeat("m1", 2, instance="a")
    await s.join(instance="b", protocols=(("roundrobin", b""), ("range", SUBSCRIPTION + b"\0")), version=9)
    await s.heartbeat("m1", 2, instance="a")
    await s.log()


async def static_bounce_while_assigning(s: Script) -> None:
    """An instance that comes back before the assignment is there begins another rebalance."""
    await (await s.member(instance="i"))
    await s.join(instance="i")
    await s.sync("m1", 1, {"m1": b"all"}, instance="i")
    await s.sync("m2", 2, {"m2": b"all"}, instance="i")
    await s.log()


async def rejoins(s: Script) -> None:
    """A follower that rejoins unchanged keeps its generation; the leader, or a changed member, causes a rebalance."""
    await s.stable_pair()
    await s.join("m2")
    await s.describe()
    changed = asyncio.create_task(s.join("m2", protocols=(("range", SUBSCRIPTION + b"\0"),), quietly=True))
    await s.rejoined("m1", changed)
    s.say(s.joined(await changed, "m2"))
    await s.join("m2", protocols=(("range", SUBSCRIPTION + b"\0"),))
    await s.join("m1")
    await asyncio.gather(s.sync("m2", 3, quietly=True), s.sync("m1", 3, {}, quietly=True))
    leader = asyncio.create_task(s.join("m1", quietly=True))
    await s.rejoined("m2", leader)
    s.say(s.joined(await leader, "m1"))


async def votes(s: Script) -> None:
    """The protocol that most members like best of those that all have."""
    likes = ((("a", b"1"), ("b", b"2"), ("c", b"3")), (("c", b""), ("b", b"")), (("d", b""), ("b", b""), ("c", b"")))
    first = asyncio.create_task(s.join(version=3, protocols=likes[0], quietly=True))
    s.say(s.joined(await first, "m1"))
    second = asyncio.create_task(s.join(version=3, protocols=likes[1], quietly=True))
    await s.until_preparing()
    third = asyncio.create_task(s.join(version=3, protocols=likes[2], quietly=True))
    await asyncio.sleep(0.5)
    joined = await s.join("m1", protocols=likes[0], quietly=True)
    await asyncio.gather(second, third)
    s.say(f"{joined.error_code} {joined.generation_id} {joined.protocol_name} {len(joined.members)}")


async def wrong_protocol_at_sync(s: Script) -> None:
    """A member that expects another protocol than the chosen one gets no assignment (KIP-559)."""
    await (await s.member())
    await s.sync("m1", 1, {"m1": b"all"}, version=5, protocol="roundrobin")
    await s.sync("m1", 1, {"m1": b"all"}, version=5, protocol=None)
    await s.sync("m1", 1, {"m1": b"all"}, version=5)


async def leaving(s: Script) -> None:
    """Members leave one by one or together; each is answered on its own."""
    await s.leave(("m9", None))
    await s.leave(("m9", None), version=0)
    await s.stable_pair()
    await s.join()
    await s.leave(("m3", None), ("m3", None), ("m2", "i"), ("m2", None))
    await s.heartbeat("m1", 2)
    await s.leave(("m1", None))
    await s.describe()
    await s.log()


async def deletion(s: Script) -> None:
    """A group with members stays; one without goes, and what it has committed."""
    await s.delete()
    await s.delete_offset()
    await s.describe()
    await s.stable()
    await s.commit(5, "m1", 1)
    await s.delete()
    await s.delete_offset()
    await s.delete_offset("nowhere")
    await s.leave(("m1", None))
    await s.delete()
    await s.committed()
    await s.delete()
    await s.list()
    await s.log()


async def last_offset_deleted(s: Script) -> None:
    """A group without members goes with its last offset."""
    await s.commit(5)
    await s.describe()
    await s.list()
    await s.delete_offset()
    await s.delete_offset()
    await s.log()


async def offsets_only(s: Script) -> None:
    """A group that never had members is deleted without a word about itself."""
    await s.commit(5)
    await s.delete()
    await s.log()


async def types(s: Script) -> None:
    """All groups are classic ones, in whatever case that is written; of other types, known or not, there are none."""
    await s.commit(5)
    for named in ((), ("classic",), ("Classic", "consumer"), ("consumer",), ("nonsense",)):
        await s.list_of_type(*named)


async def own_retention(s: Script) -> None:
    """An older client says how long its offset is to live."""
    await s.commit(5, version=4, retention_ms=60_000)
    await s.log()


async def other_types(s: Script) -> None:
    """Only what consumers say is looked into."""
    await (await s.member(protocol_type="connect"))
    await s.sync("m1", 1, {"m1": b"all"}, protocol=None)
    await s.delete_offset()
    await s.describe()


async def garbage(s: Script) -> None:
    """The member's subscription is unreadable, and the group works."""
    garbage = (("range", b"\0\0\xff"),)
    await (await s.member(protocols=garbage))
    await s.sync("m1", 1, {"m1": b"\xff" * 9})
    await s.commit(5, "m1", 1)
    await s.delete_offset()
    await s.describe()
    await s.log()


async def large_assignment(s: Script) -> None:
    """An assignment that a record can hold, and one that it cannot."""
    await (await s.member())
    await s.sync("m1", 1, {"m1": bytes(1_000_000)})
    await s.leave(("m1", None))
    await (await s.member())
    await s.sync("m2", 3, {"m2": bytes(1_100_000)})
    await s.heartbeat("m2", 3)
    await s.describe()


async def long_names(s: Script) -> None:
    """A name can have 32,767 bytes; with one more the connection is closed."""
    s.group = "g" * 32_767
    await s.join(version=6)
    await s.join("m1", version=6)
    await s.sync("m1", 1, {"m1": b"all"}, version=5)
    await s.log()
    s.group += "g"
    try:
        await s.join(version=6)
    except PeerError:
        s.say("join: the connection is closed")


async def session_ends(s: Script) -> None:
    """A member that is not heard of is gone after its session time-out."""
    await s.stable(session_ms=1_000)
    await s.until_state("Empty")
    await s.heartbeat("m1", 1)
    await s.log()


async def rebalance_time_ends(s: Script) -> None:
    """A member that does not rejoin in time is removed."""
    await s.stable(rebalance_ms=1_000)
    s.say(s.joined(await (await s.member(rebalance_ms=1_000)), "m2"))
    await s.heartbeat("m1", 1)
    await s.describe()


async def never_synced(s: Script) -> None:
    """A member that never asks for its assignment is removed too, even with heartbeats."""
    await (await s.member(rebalance_ms=1_000))
    for _ in range(3):
        await asyncio.sleep(0.2)
        await s.heartbeat("m1", 1)
    await s.until_state("Empty")
    await s.heartbeat("m1", 1)
    await s.log()


async def five_hundred_members(s: Script) -> None:
    """Members of a large group join at once, have an assignment each, and leave in one request."""
    count = 500
    await s.stable(session_ms=30_000, rebalance_ms=60_000)
    others = [asyncio.create_task(s.join(version=3, session_ms=30_000, quietly=True)) for _ in range(count - 1)]
    async with asyncio.timeout(60):
        while len((await s.described()).members) < count:  # noqa: ASYNC110  it happens in another process
            await asyncio.sleep(0.2)
    joined = [await s.join("m1", session_ms=30_000, quietly=True), *await asyncio.gather(*others)]
    s.say(f"joined: {Counter((each.error_code, each.generation_id, len(each.members)) for each in joined)}")
    names = [s.name(each.member_id) for each in joined]
    assignments = {name: name.encode() for name in names}
    synced = await asyncio.gather(
        *(s.sync(name, 2, assignments if name == "m1" else {}, quietly=True) for name in names)
    )
    own = [each.assignment.decode() == name for name, each in zip(names, synced, strict=True)]
    s.say(f"synced: {Counter(each.error_code for each in synced)} each its own: {all(own)}")
    left = await s.leave(*((name, None) for name in names[1:]), quietly=True)
    s.say(f"left: {left.error_code} {Counter(each.error_code for each in left.members)}")
    await s.heartbeat("m1", 2)
    await s.join("m1")


async def a_thousand_groups(s: Script) -> None:
    """Many groups of one member each."""
    groups = [Script(s.transport, s.host, s.port, f"{s.group}-{number}") for number in range(1_000)]
    for some in range(0, len(groups), 50):
        await asyncio.gather(*(each.stable(session_ms=60_000) for each in groups[some : some + 50]))
    for each in groups:
        await each.commit(5, "m1", 1)
    s.say(f"committed: {Counter(line for each in groups for line in each.transcript)}")


async def initial_delay(s: Script) -> None:
    """A new group waits for more members, and anew when one comes; a group that has lost all its members does again."""
    await s.committed()
    began_s = now_s()
    first = await s.member()
    await asyncio.sleep(0.5)
    second = await s.member()
    await _say_when(s, began_s, first, second)
    synced = asyncio.gather(s.sync("m2", 1, quietly=True), s.sync("m1", 1, {"m1": b"one", "m2": b"two"}, quietly=True))
    s.say(f"assigned: {[each.assignment for each in await synced]}")
    began_s = now_s()
    third = await s.member()
    await s.until_preparing()
    await _say_when(s, began_s, s.join("m1", quietly=True), s.join("m2", quietly=True), third)
    await s.leave(("m1", None), ("m2", None), ("m3", None))
    began_s = now_s()
    await _say_when(s, began_s, await s.member())


async def _say_when(s: Script, began_s: float, *joining: Awaitable[Any]) -> None:
    """Say after how many whole seconds members have joined, in which generation, and the members in each answer."""
    joined = await asyncio.gather(*joining)
    s.say(f"{int(now_s() - began_s)} s: {[(each.generation_id, len(each.members)) for each in joined]}")


async def initial_delay_ends(s: Script) -> None:
    """Members that keep coming delay the first generation for the members' rebalance time at most."""
    await s.committed()
    began_s = now_s()
    coming = []
    for after_s in (0, 0.75, 1.5, 2.25):
        await until_s(began_s + after_s)
        coming.append(await s.member(rebalance_ms=3_000))
    await _say_when(s, began_s, *coming)


async def several_coordinators(s: Script) -> None:
    """Several keys at once (KIP-699), as far as each can be answered; a transactional id beside them is no group."""
    await s.committed()
    for version in (1, 3):
        await s.fields(m.FindCoordinatorRequest(key_type=7, key=s.group), version)
    for version in (4, 5, 6):
        keys = [s.group, "", s.group]
        await s.fields(m.FindCoordinatorRequest(key_type=0, coordinator_keys=keys), version)
        await s.fields(m.FindCoordinatorRequest(key_type=0, coordinator_keys=[]), version)
        await s.fields(m.FindCoordinatorRequest(key_type=7, coordinator_keys=[s.group]), version)


async def retention(s: Script) -> None:
    """Offsets live from when the group lost its members, without any from their commit (KIP-211), for a minute here."""
    left, alone, elsewhere = (Script(s.transport, s.host, s.port, f"{s.group}-{name}") for name in "abc")
    await left.stable_at_once(session_ms=120_000)
    await elsewhere.stable_at_once(session_ms=120_000, protocols=ELSEWHERE)
    async with asyncio.timeout(TIMEOUT_S):
        while await alone.commit(6):  # the topic has just been made
            alone.transcript.clear()
    await asyncio.gather(left.commit(5, "m1", 1), elsewhere.commit(7, "m1", 1))
    began_s = now_s()
    await until_s(began_s + 20)
    await left.leave(("m1", None))
    for after_s in (50, 70, 90):
        await until_s(began_s + after_s)
        for each in (left, alone, elsewhere):
            await each.committed()
    await left.list()
    await elsewhere.list()
    for name, each in (("left", left), ("alone", alone), ("elsewhere", elsewhere)):
        await each.log()
        s.transcript += [f"{name}: {line}" for line in each.transcript]


def now_s() -> float:
    """Return the time of the loop, which may be virtual."""
    return asyncio.get_running_loop().time()


async def until_s(instant_s: float) -> None:
    """Wait until then."""
    await asyncio.sleep(instant_s - now_s())


SITUATIONS: tuple[Situation, ...] = (
    one_member,
    old_clients,
    second_member,
    cooperative,
    refused_joins,
    no_group_id,
    zombies,
    static_bounce,
    static_follower_bounce,
    static_bounce_while_assigning,
    static_bounce_before_handover,
    rejoins,
    votes,
    wrong_protocol_at_sync,
    leaving,
    deletion,
    last_offset_deleted,
    offsets_only,
    types,
    other_types,
    garbage,
    large_assignment,
    long_names,
    own_retention,
    session_ends,
    rebalance_time_ends,
    never_synced,
    five_hundred_members,
    a_thousand_groups,
    expiry,
    id_expires,
    full,
    every_version,
    several_coordinators,
    initial_delay,
    initial_delay_ends,
    retention,
)
_LOOKS_OFTEN = {"offsets.retention.check.interval.ms": "500"}
_WAITS_FOR_MORE = {"group.initial.rebalance.delay.ms": "1000"}
PARTICULAR: Mapping[Situation, Mapping[str, str]] = {
    expiry: _LOOKS_OFTEN,
    id_expires: _LOOKS_OFTEN,
    full: {"group.max.size": "2"},
    initial_delay: _WAITS_FOR_MORE,
    initial_delay_ends: _WAITS_FOR_MORE,
    retention: _LOOKS_OFTEN | {"offsets.retention.minutes": "1"},
}
"""Situations in which the brokers are told more."""


async def play(situation: Situation, transport: Transport, host: str, port: int) -> list[str]:
    """Return what a cluster answers and stores in a situation."""
    script = Script(transport, host, port, group=situation.__name__)
    await situation(script)
    return script.transcript


def main() -> None:
    """Play all situations to real Kafka, and keep what it says."""
    transcripts = {}
    for properties in ({}, *(dict(each) for each in {tuple(each.items()) for each in PARTICULAR.values()})):
        with (
            tempfile.TemporaryDirectory(prefix="chaos-benchmark-") as folder,
            running("kafka", Path(folder), properties=PROPERTIES | properties) as peer,
        ):
            create_topic(peer, TOPIC, 1)
            host, _, port = peer.bootstrap_servers.split(",")[0].rpartition(":")
            for situation in (each for each in SITUATIONS if PARTICULAR.get(each, {}) == properties):
                transcripts[situation.__name__] = asyncio.run(play(situation, TcpTransport(), host, int(port)))
    recorded = {each.__name__: transcripts[each.__name__] for each in SITUATIONS}
    RECORDED.write_text(json.dumps(recorded, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
