"""What lines of real Kafka 3.9.1 tell; each is as a broker wrote it."""

import pytest

from harness.cluster.systems.kafka.told import TELLS, Teller, line_of, processes
from harness.events import (
    BecomeFollower,
    BecomeLeader,
    BrokerRegistered,
    BrokerStart,
    BrokerStop,
    Compaction,
    ControllerElected,
    Event,
    ZkSession,
)

AT = "2026-11-22 21:59:23,694 INFO "
START = f"{AT}kafka.server.KafkaServer: starting"
CONNECTED = (
    f"{AT}org.apache.zookeeper.ClientCnxn: Session establishment complete on server /127.0.0.1:15254, session id ="
    " 0x10003015c690002, negotiated timeout = 4000"
)
EXPIRED = f"{AT}kafka.zookeeper.ZooKeeperClient: [ZooKeeperClient Kafka server] Session expired."
REGISTERED = (
    f"{AT}kafka.zk.KafkaZkClient: Registered broker 0 at path /brokers/ids/0 with addresses:"
    " PLAINTEXT://127.0.0.1:22660,REPL://127.0.0.1:12664, czxid (broker epoch): 58"
)
ELECTED = (
    f"{AT}kafka.controller.KafkaController: [Controller id=0] 0 successfully elected as the controller. Epoch"
    " incremented to 2 and epoch zk version is now 2"
)
LEADER = (
    f"{AT}state.change.logger: [Broker id=0] Leader my.orders-2-1 with topic id Some(bFV-Q8sqR2iGdZWuXB0LBQ) starts at"
    " leader epoch 1 from offset 83 with partition epoch 3, high watermark 79, ISR [0,2], adding replicas [] and"
    " removing replicas [] . Previous leader Some(0) and previous leader epoch was 0."
)
FOLLOWER = (
    f"{AT}state.change.logger: [Broker id=0] Follower my.orders-2-1 starts at leader epoch {{}} from offset 88 with"
    " partition epoch 1 and high watermark 84. Current leader is 2. Previous leader Some(2) and previous leader epoch"
    " was 1."
)
HANDED_OVER = (
    f"{AT}kafka.server.KafkaServer: [KafkaServer id=1] Controlled shutdown request returned successfully after 251ms"
)
CLEANED = (
    f"{AT}kafka.log.LogCleaner: Cleaner 0: Building offset map for log my.orders-2-1 for 1 segments in offset range"
    " [20, 40)."
)
STOPPED = f"{AT}kafka.server.KafkaServer: [KafkaServer id=1] shut down completed"


def leads(**changed: int) -> BecomeLeader:
    numbers = {"leader_epoch": 1, "previous_leader_epoch": -1} | changed
    return BecomeLeader(topic="my.orders-2", partition=1, log_start_offset=-1, high_watermark=79, log_end_offset=83,
                        isr=[0, 2], zk_version=3, **numbers)  # fmt: skip


def follows(epoch: int, before: int) -> BecomeFollower:
    return BecomeFollower(topic="my.orders-2", partition=1, leader=2, leader_epoch=epoch, previous_leader_epoch=before,
                          log_start_offset=-1, high_watermark=84, log_end_offset=88)  # fmt: skip


STARTED = BrokerStart(config_digest="", clean_marker=False, planted_bugs=[])


@pytest.mark.parametrize(
    ("lines", "events"),
    [
        pytest.param([START], [STARTED], id="a process starts"),
        pytest.param([CONNECTED], [ZkSession(state="connected")], id="it has a session"),
        pytest.param(
            [EXPIRED, CONNECTED],
            [ZkSession(state="lost"), ZkSession(state="reinit")],
            id="a session that follows an expired one replaces it",
        ),
        pytest.param([REGISTERED], [BrokerRegistered(czxid=58)], id="it is registered"),
        pytest.param(
            [ELECTED], [ControllerElected(controller_epoch=2, epoch_zk_version=2)], id="it is elected controller"
        ),
        pytest.param([LEADER], [leads()], id="it leads a partition of a topic with dots, hyphens and a number"),
        pytest.param(
            [FOLLOWER.format(2), FOLLOWER.format(3)],
            [follows(2, -1), follows(3, 2)],
            id="the epoch before is the one that it told before, not the one that the line repeats",
        ),
        pytest.param(
            [FOLLOWER.format(2), START, FOLLOWER.format(3)],
            [follows(2, -1), STARTED, follows(3, -1)],
            id="a new process remembers no epoch",
        ),
        pytest.param(
            [CLEANED.replace("offset map for log my", "offset map for my"), CLEANED],
            [Compaction(topic="my.orders-2", partition=1, from_offset=0, until_offset=40)],
            id="it cleans a log up to an offset, and what was clean before too",
        ),
        pytest.param([HANDED_OVER, STOPPED], [BrokerStop(controlled=True)], id="it hands over and stops"),
        pytest.param([STOPPED], [BrokerStop(controlled=False)], id="it stops and has nobody to hand over to"),
        pytest.param(
            [HANDED_OVER, START, STOPPED],
            [STARTED, BrokerStop(controlled=False)],
            id="what one process handed over says nothing of the next",
        ),
        pytest.param([START[:-4]], [], id="a torn line tells nothing"),
        pytest.param(["\tat kafka.Kafka.main(Kafka.scala)", ""], [], id="the lines of a stack trace tell nothing"),
        pytest.param([f"{AT}kafka.log.LogManager: starting"], [], id="another logger may say the same"),
    ],
)
def test_what_lines_tell(lines: list[str], events: list[Event]) -> None:
    told = [event for _, _, event in processes(iter(lines))]
    assert told == events
    assert {event.ev for event in told} <= TELLS


def test_lines_are_stamped_with_what_their_process_knew() -> None:
    seen = [
        (hex(teller.session), teller.broker_epoch) for teller, _, _ in processes(iter([CONNECTED, REGISTERED, LEADER]))
    ]
    assert seen[-1] == ("0x10003015c690002", 58)


def test_the_instant_is_utc_to_the_millisecond() -> None:
    line = line_of("1970-01-02 00:00:01,005 WARN a.b$C: text: with colon")
    assert line is not None
    assert (line.time_ns, line.logger, line.text) == (86_401_005_000_000, "a.b$C", "text: with colon")


@pytest.mark.parametrize(
    ("text", "counted"),
    [
        pytest.param(LEADER.replace("starts at leader epoch", "begins in epoch"), 1, id="a leader in other words"),
        pytest.param(CLEANED.replace("offset range", "range"), 1, id="a cleaning in other words"),
        pytest.param(REGISTERED.replace("broker epoch", "epoch"), 1, id="a registration in other words"),
        pytest.param(f"{AT}state.change.logger: [Broker id=0] Handling LeaderAndIsr request", 0, id="of no interest"),
    ],
)
def test_a_line_that_must_be_known_and_is_not_is_counted(text: str, counted: int) -> None:
    teller, line = Teller(), line_of(text)
    assert line is not None
    assert teller.event(line) is None
    assert teller.unknown.total() == counted
