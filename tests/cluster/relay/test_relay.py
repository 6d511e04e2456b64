"""What passes a relay, and what does not: real sockets, all ends in this process."""

import asyncio
import contextlib
import errno
import os
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from harness.cluster.driver import OVER_LINKS
from harness.cluster.links.rules import Action, Rule, rule_data
from harness.cluster.ports import LOOPBACK, PortReservations
from harness.cluster.processes.driver import ProcessDriver
from harness.cluster.relay import PROBES_NAME, UNKNOWN, senders
from harness.cluster.relay.connection import AT_ONCE, MOST_WAITING_BYTES
from harness.cluster.relay.listeners import Listener, Setup, Speech, load, save
from harness.cluster.relay.relay import READY, Relay
from harness.cluster.supervision.command_socket import answer
from harness.kafka.requests import KEYS
from harness.system.pids import identify, write_pid_file
from harness.system.waiting import until

LONG_S = 120.0
READ_BYTES = 1 << 16
Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass
class Stage:
    """A relay to one broker, which sends back what it hears and says in the end that it has heard all."""

    relay: Relay
    for_clients: int
    for_peers: int
    for_messages: int
    """For clients whose messages may be intercepted."""
    leads_nowhere: int
    leads_nowhere_yet: int
    free_port: int
    """Where that leads."""
    broker_port: int
    pids: Path
    accepted: list[asyncio.StreamWriter] = field(default_factory=list)
    opened: list[asyncio.StreamWriter] = field(default_factory=list)
    broken: asyncio.Event = field(default_factory=asyncio.Event)
    """The broker saw a connection break."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Be the broker of one connection."""
        self.accepted.append(writer)
        try:
            while data := await reader.read(READ_BYTES):
                writer.write(data)
                await writer.drain()
            writer.write_eof()
        except ConnectionError:
            self.broken.set()

    async def connect(self, port: int, own_address: str = LOOPBACK) -> Ends:
        """Connect to the relay."""
        reader, writer = await asyncio.open_connection(LOOPBACK, port, local_addr=(own_address, 0))
        self.opened.append(writer)
        return reader, writer

    async def probe_end(self, line: bytes) -> Ends:
        """Be one end of a probe, which says this of itself."""
        reader, writer = await asyncio.open_unix_connection(PROBES_NAME)
        self.opened.append(writer)
        writer.write(line)
        return reader, writer

    async def echoed(self, ends: Ends, text: bytes) -> bytes:
        """Send something, and return what came back of it."""
        reader, writer = ends
        writer.write(text)
        return await reader.readexactly(len(text))

    async def names(self, other: str = "clients") -> list[str]:
        """Return the names of the broker's connections with a host."""
        return list((await self.relay.connections("broker-0", [other]))["names"])

    async def cut(self, *links: tuple[str, str], at_most_s: float = LONG_S) -> None:
        """Cut links by the name of this test."""
        await self.relay.cut("test", [list(link) for link in links], at_most_s)


@pytest.fixture
async def stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> AsyncIterator[Stage]:
    """A relay that runs in its folder; it knows hosts by their processes, or by these addresses."""
    monkeypatch.chdir(tmp_path)
    addresses: dict[str, str] = getattr(request, "param", {})
    async with AsyncExitStack() as stack:
        ports = stack.enter_context(PortReservations()).reserve(7)
        broker = await asyncio.start_server(lambda *ends: made.serve(*ends), LOOPBACK, 0)
        stack.callback(broker.close)
        target_port = broker.sockets[0].getsockname()[1]
        listeners = [
            Listener(port=ports[0], destination="broker-0", target_port=target_port, source="clients"),
            Listener(port=ports[1], destination="broker-0", target_port=target_port),
            Listener(
                port=ports[6], destination="broker-0", target_port=target_port, source="clients", speech=Speech.KAFKA
            ),
            Listener(port=ports[2], destination="broker-1", target_port=ports[3], source="clients"),
            Listener(port=ports[4], destination="broker-1", target_port=ports[5], source="clients", patience_s=LONG_S),
        ]
        setup = Setup(listeners=listeners, pids=None if addresses else str(tmp_path), addresses=addresses)
        save(tmp_path, setup)
        assert load(tmp_path) == setup
        relay = Relay(load(tmp_path))
        await relay.listen(stack)
        made = Stage(
            relay,
            for_clients=ports[0],
            for_peers=ports[1],
            for_messages=ports[6],
            leads_nowhere=ports[2],
            leads_nowhere_yet=ports[4],
            free_port=ports[5],
            broker_port=target_port,
            pids=tmp_path,
        )
        yield made
        for writer in (*made.opened, *made.accepted):
            writer.transport.abort()
        for host in ("broker-0", "broker-1"):
            await relay.reset(host, ["clients", "broker-1", UNKNOWN])


async def nothing_comes(coming: asyncio.Future[bytes]) -> None:
    """See that something has not come although others went to and fro meanwhile."""
    for _ in range(20):
        await asyncio.sleep(0)
    assert not coming.done()


async def beside(stage: Stage) -> None:
    """Let something go to and fro on a link that is as usual."""
    assert await stage.echoed(await stage.connect(stage.for_peers), b"beside") == b"beside"


async def test_all_passes_both_ways_in_order_and_the_end_too(stage: Stage) -> None:
    reader, writer = await stage.connect(stage.for_clients)
    text = os.urandom(1 << 20)
    writer.write(text)
    writer.write_eof()
    assert await reader.read(-1) == text
    await until(stage.names, lambda seen: not seen, what="the end of the connection", timeout_s=LONG_S)


@pytest.mark.parametrize(
    "link",
    [
        pytest.param(("clients", "broker-0"), id="on the way to it"),
        pytest.param(("broker-0", "clients"), id="on the way back"),
    ],
)
async def test_what_is_sent_over_a_cut_link_waits_until_it_is_healed(stage: Stage, link: tuple[str, str]) -> None:
    ends = await stage.connect(stage.for_clients)
    assert await stage.echoed(ends, b"first") == b"first"
    await stage.cut(link)
    coming = asyncio.ensure_future(stage.echoed(ends, b"second"))
    await beside(stage)
    await nothing_comes(coming)
    await stage.relay.release("test")
    assert await coming == b"second"


async def test_a_cut_ends_by_itself(stage: Stage) -> None:
    ends = await stage.connect(stage.for_clients)
    await stage.cut(("clients", "broker-0"), at_most_s=0.05)
    assert await stage.echoed(ends, b"waits") == b"waits"


@pytest.mark.parametrize(
    "link",
    [
        pytest.param(("clients", "broker-0"), id="its first packet"),
        pytest.param(("broker-0", "clients"), id="the answer to it"),
    ],
)
async def test_a_connection_that_is_made_over_a_cut_link_is_there_when_it_is_healed(
    stage: Stage, link: tuple[str, str]
) -> None:
    await stage.cut(link)
    coming = asyncio.ensure_future(stage.echoed(await stage.connect(stage.for_clients), b"patient"))
    await beside(stage)
    await nothing_comes(coming)
    await stage.relay.release("test")
    assert await coming == b"patient"


async def test_the_end_of_one_side_is_not_heard_over_a_cut_link(stage: Stage) -> None:
    reader, writer = await stage.connect(stage.for_clients)
    assert await stage.echoed((reader, writer), b"first") == b"first"
    await stage.cut(("clients", "broker-0"))
    writer.write_eof()
    coming = asyncio.ensure_future(reader.read(-1))
    await beside(stage)
    await nothing_comes(coming)
    await stage.relay.release("test")
    assert await coming == b""


async def test_a_slow_link_takes_its_time_and_keeps_the_order(stage: Stage) -> None:
    ends = await stage.connect(stage.for_clients)
    assert await stage.echoed(ends, b"quick") == b"quick"
    loop = asyncio.get_running_loop()
    await stage.relay.slow("test", [["clients", "broker-0"]], {"extra_s": 0.05}, LONG_S)
    began_s = loop.time()
    ends[1].write(b"one, ")
    await asyncio.sleep(0)
    ends[1].write(b"two")
    assert await ends[0].readexactly(8) == b"one, two"
    assert loop.time() - began_s >= 0.05


async def test_a_delay_that_ends_loses_and_reorders_nothing(stage: Stage) -> None:
    reader, writer = ends = await stage.connect(stage.for_clients)
    assert await stage.echoed(ends, b"quick") == b"quick"
    (connection,) = stage.relay.between("broker-0", ["clients"]).values()
    await stage.relay.slow("test", [["clients", "broker-0"]], {"extra_s": 0.2}, LONG_S)
    pieces = [bytes([number]) * 1024 for number in range(120)]
    for number, piece in enumerate(pieces):
        if number == len(pieces) // 2:
            await stage.relay.release("test")
        connection.near.data_received(piece)
    writer.write_eof()
    async with asyncio.timeout(LONG_S):
        assert await reader.read(-1) == b"".join(pieces)


async def test_over_a_link_with_a_rate_no_more_passes_and_all_that_waits_does_when_it_is_lifted(stage: Stage) -> None:
    ends = await stage.connect(stage.for_clients)
    assert await stage.echoed(ends, b"quick") == b"quick"
    loop, text = asyncio.get_running_loop(), os.urandom(1000)
    await stage.relay.slow("test", [["clients", "broker-0"]], {"bytes_per_s": 10_000}, LONG_S)
    began_s = loop.time()
    assert await stage.echoed(ends, text) == text
    assert loop.time() - began_s >= 0.1
    await stage.relay.slow("test", [["clients", "broker-0"]], {"bytes_per_s": 1}, LONG_S)
    coming = asyncio.ensure_future(stage.echoed(ends, text))
    await beside(stage)
    await nothing_comes(coming)
    await stage.relay.release("test")
    assert await coming == text


async def test_much_at_once_holds_nobody_up_over_a_link_with_a_rate(stage: Stage) -> None:
    much, little = await stage.connect(stage.for_clients), await stage.connect(stage.for_clients)
    for ends in (much, little):
        assert await stage.echoed(ends, b"quick") == b"quick"
    await stage.relay.slow("test", [["clients", "broker-0"]], {"bytes_per_s": 4_000}, LONG_S)
    text = os.urandom(1 << 17)
    coming = asyncio.ensure_future(stage.echoed(much, text))
    await asyncio.sleep(0.1)
    began_s = asyncio.get_running_loop().time()
    assert await stage.echoed(little, b"little") == b"little"
    assert asyncio.get_running_loop().time() - began_s < 8, "it waits for a piece, which takes a second, not for all"
    assert not coming.done()
    await stage.relay.release("test")
    assert await coming == text


async def test_what_cannot_come_out_breaks_the_connection(stage: Stage) -> None:
    ends = await stage.connect(stage.for_clients)
    assert await stage.echoed(ends, b"first") == b"first"
    (connection,) = stage.relay.between("broker-0", ["clients"]).values()
    connection.far.end()
    ends[1].write(b"too late")
    async with asyncio.timeout(LONG_S):
        with pytest.raises(ConnectionResetError):
            await ends[0].read(1)


async def test_a_connection_that_the_kernel_cannot_be_asked_about_is_broken(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_descriptor(*_: int) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(senders, "inode_of", no_descriptor)
    reader, writer = await stage.connect(stage.for_peers)
    writer.write(b"lost?")
    async with asyncio.timeout(LONG_S):
        with contextlib.suppress(ConnectionResetError):  # how it shows depends on whether the byte came first
            assert await reader.read(1) == b""


async def test_a_reset_is_seen_at_both_ends_and_a_name_is_never_used_again(stage: Stage) -> None:
    ends = await stage.connect(stage.for_clients)
    assert await stage.echoed(ends, b"first") == b"first"
    before = await stage.names()
    await stage.relay.reset("broker-0", ["clients"])
    assert await stage.names() == []
    with pytest.raises(ConnectionResetError):
        await ends[0].read(1)
    await stage.broken.wait()
    assert await stage.echoed(await stage.connect(stage.for_clients), b"anew") == b"anew"
    after = await stage.names()
    assert (len(before), len(after)) == (1, 1)
    assert before != after


async def test_a_host_that_breaks_off_is_heard_to_at_the_other_end(stage: Stage) -> None:
    ends = await stage.connect(stage.for_clients)
    assert await stage.echoed(ends, b"first") == b"first"
    ends[1].get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
    ends[1].transport.abort()
    await stage.broken.wait()


async def test_a_connection_to_where_nobody_listens_is_reset(stage: Stage) -> None:
    reader, _ = await stage.connect(stage.leads_nowhere)
    with pytest.raises(ConnectionResetError):
        await reader.read(1)


async def test_with_patience_a_connection_waits_for_who_is_to_listen(stage: Stage) -> None:
    reader, writer = await stage.connect(stage.leads_nowhere_yet)
    writer.write(b"early")
    coming = asyncio.ensure_future(reader.readexactly(5))
    await beside(stage)
    await nothing_comes(coming)
    late = await asyncio.start_server(stage.serve, LOOPBACK, stage.free_port)
    assert await coming == b"early"
    late.close()


async def test_who_sends_much_over_a_cut_link_has_to_wait(stage: Stage) -> None:
    ends = await stage.connect(stage.for_clients)
    assert await stage.echoed(ends, b"first") == b"first"
    await stage.cut(("clients", "broker-0"))
    text = bytes(16 * MOST_WAITING_BYTES)
    coming = asyncio.ensure_future(stage.echoed(ends, text))
    (connection,) = stage.relay.between("broker-0", ["clients"]).values()

    async def waiting_bytes() -> int:
        return connection.near.waiting_bytes

    await until(waiting_bytes, lambda seen: seen >= MOST_WAITING_BYTES, what="enough", timeout_s=LONG_S)
    await beside(stage)
    assert connection.near.waiting_bytes < 2 * MOST_WAITING_BYTES
    await stage.relay.release("test")
    assert await coming == text


async def test_a_probe_is_two_sockets_and_passes_where_its_link_does(stage: Stage) -> None:
    await stage.cut(("broker-1", "broker-0"))
    taken: dict[str, asyncio.Future[bytes]] = {}
    for name, link in (("cut", b'["broker-1", "broker-0"]'), ("whole", b'["broker-0", "broker-1"]')):
        receiver, _ = await stage.probe_end(b'{"name": "%b"}\n' % name.encode())
        assert await receiver.read(1) == READY
        reader, sender = await stage.probe_end(b'{"name": "%b", "link": %b}\n' % (name.encode(), link))
        assert await reader.read(1) == READY
        sender.write(b"?")
        taken[name] = asyncio.ensure_future(receiver.read(1))
    assert await taken["whole"] == b"?"
    await nothing_comes(taken["cut"])
    assert await stage.names("broker-1") == [], "it is no connection of theirs"
    await stage.relay.release("test")
    assert await taken["cut"] == b"?"


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b'{"name": "nobody", "link": ["broker-1", "broker-0"]}\n', id="to an end that is not there"),
        pytest.param(b'{"link": ["broker-1", "broker-0"]}\n', id="without a name"),
        pytest.param(b'{"name": "x", "link": ["broker-1"]}\n', id="over no link"),
        pytest.param(b"[]\n", id="of which nothing is said"),
        pytest.param(b"?\n", id="in no JSON"),
    ],
)
async def test_a_probe_that_cannot_be_is_broken_off(stage: Stage, line: bytes) -> None:
    reader, _ = await stage.probe_end(line)
    assert await reader.read(1) == b""


async def test_the_end_of_a_probe_that_went_away_is_forgotten(stage: Stage) -> None:
    receiver, writer = await stage.probe_end(b'{"name": "x"}\n')
    assert await receiver.read(1) == READY
    writer.close()

    async def sent() -> bytes:
        reader, _ = await stage.probe_end(b'{"name": "x", "link": ["broker-1", "broker-0"]}\n')
        return await reader.read(1)

    await until(sent, lambda seen: seen == b"", what="no receiver", timeout_s=LONG_S)


@pytest.mark.parametrize("stage", [{"127.0.0.9": "broker-1"}], indirect=True)
async def test_where_each_host_has_an_address_that_says_who_connects(stage: Stage) -> None:
    for address in ("127.0.0.9", "127.0.0.8"):
        assert await stage.echoed(await stage.connect(stage.for_peers, address), b"peer") == b"peer"
    assert len(await stage.names("broker-1")) == len(await stage.names(UNKNOWN)) == 1


async def test_the_kernel_says_which_broker_it_is_that_connects(stage: Stage) -> None:
    me = identify(os.getpid())
    assert me is not None
    stranger = await stage.connect(stage.for_peers)
    assert await stage.echoed(stranger, b"stranger") == b"stranger"
    write_pid_file(stage.pids / "broker-1.pid", me)
    peer = await stage.connect(stage.for_peers)
    assert await stage.echoed(peer, b"peer") == b"peer"
    assert len(await stage.names("broker-1")) == len(await stage.names(UNKNOWN)) == 1

    await stage.cut(("broker-1", "broker-0"))
    coming = asyncio.ensure_future(stage.echoed(peer, b"cut"))
    assert await stage.echoed(stranger, b"whole") == b"whole"
    assert await stage.echoed(await stage.connect(stage.for_clients), b"whole") == b"whole"
    await nothing_comes(coming)
    await stage.relay.release("test")
    assert await coming == b"cut"


def test_a_socket_that_is_gone_has_no_owner(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind((LOOPBACK, 0))
        port = closed.getsockname()[1]
    assert senders.sender(port, port, ["broker-0"], tmp_path) is None


def test_this_machine_lacks_nothing_and_one_whose_kernel_is_silent_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert senders.lacking() == ""
    monkeypatch.setattr(senders, "inode_of", lambda *_: None)
    assert senders.lacking() == "the kernel does not identify the sender of a connection"
    lacking = {name: why for name, why in ProcessDriver.lacks().items() if name in OVER_LINKS}
    assert lacking == dict.fromkeys(OVER_LINKS, "the kernel does not identify the sender of a connection")


async def test_a_link_is_of_two_hosts(stage: Stage) -> None:
    answer_ = await answer(stage.relay.commands, b'{"command": "cut", "holder": "a", "links": [["b"]], "at_most_s": 1}')
    assert answer_ == {"error": "cut: a link is a sender and a receiver, not [['b']]"}


def heartbeat(number: int) -> bytes:
    """Return the frame of a request in version `number`, whose echo is its answer: both have one correlation id."""
    body = (KEYS["Heartbeat"] << 16 | number).to_bytes(4) * 2 + b"\xff\xff"
    return len(body).to_bytes(4) + body


def to_broker(**rule: object) -> dict[str, object]:
    """Return a rule on heartbeats of clients."""
    one = Rule(links=frozenset({("clients", "broker-0")}), api_keys=frozenset({KEYS["Heartbeat"]}), action=Action.HOLD)
    return rule_data(replace(one, **rule))  # type: ignore[arg-type]


async def test_a_message_is_held_until_it_is_let_go(stage: Stage) -> None:
    reader, writer = await stage.connect(stage.for_messages)
    await stage.relay.intercept("holder", to_broker(nth=2), LONG_S)
    assert await stage.echoed((reader, writer), heartbeat(1)) == heartbeat(1)
    for part in (heartbeat(2)[:5], heartbeat(2)[5:] + heartbeat(3)):
        writer.write(part)
    coming = asyncio.ensure_future(reader.readexactly(2 * len(heartbeat(1))))
    await until(
        lambda: stage.relay.caught("holder"), lambda seen: bool(seen["caught"]), what="one caught", timeout_s=LONG_S
    )
    await nothing_comes(coming)
    await stage.relay.let_go("holder")
    assert await coming == heartbeat(2) + heartbeat(3)


async def test_a_held_message_goes_on_when_its_rule_s_time_is_over(stage: Stage) -> None:
    ends = await stage.connect(stage.for_messages)
    assert await stage.echoed(ends, heartbeat(1)) == heartbeat(1)
    began_s = asyncio.get_running_loop().time()
    await stage.relay.intercept("holder", to_broker(), 1.0)
    assert await stage.echoed(ends, heartbeat(2)) == heartbeat(2)
    (caught,) = (await stage.relay.caught("holder"))["caught"]
    assert caught["let_go_s"] - began_s >= 0.99


async def test_a_held_message_arrives_though_its_sender_is_gone(stage: Stage) -> None:
    _, writer = await stage.connect(stage.for_messages)
    await stage.relay.intercept("holder", to_broker(), LONG_S)
    writer.write(heartbeat(1))
    await until(
        lambda: stage.relay.caught("holder"), lambda seen: bool(seen["caught"]), what="one caught", timeout_s=LONG_S
    )
    writer.close()
    await until(
        lambda: stage.relay.caught("holder"),
        lambda seen: seen["caught"][0]["left_s"] is not None,
        what="the sender gone",
        timeout_s=LONG_S,
    )
    await stage.relay.let_go("holder")
    await until(
        lambda: stage.relay.caught("holder"),
        lambda seen: seen["caught"][0]["answered_s"] is not None,
        what="the receiver's answer",
        timeout_s=LONG_S,
    )


async def test_a_lost_request_ends_with_its_connection(stage: Stage) -> None:
    reader, writer = await stage.connect(stage.for_messages)
    await stage.relay.intercept("holder", to_broker(action=Action.LOSE), LONG_S)
    writer.write(heartbeat(1))
    await until(
        lambda: stage.relay.caught("holder"), lambda seen: bool(seen["caught"]), what="one caught", timeout_s=LONG_S
    )
    await stage.relay.let_go("holder")
    with pytest.raises(ConnectionError):
        assert await reader.read(1) == b"", "what ends is reset"


async def test_a_request_is_delivered_over_another_connection(stage: Stage) -> None:
    _, writer = await stage.connect(stage.for_messages)
    await stage.relay.intercept("holder", to_broker(action=Action.REDELIVER, hold_s=0.01), LONG_S)
    writer.write(heartbeat(1))
    await until(
        lambda: stage.relay.caught("holder"),
        lambda seen: bool(seen["caught"]) and seen["caught"][0]["answered_s"] is not None,
        what="an answer over another connection",
        timeout_s=LONG_S,
    )
    assert len(stage.accepted) == 2


async def test_what_is_no_message_passes(stage: Stage) -> None:
    await stage.relay.intercept("holder", to_broker(), LONG_S)
    assert await stage.echoed(await stage.connect(stage.for_messages), b"no message") == b"no message"
