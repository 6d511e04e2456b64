from pathlib import Path

import pytest

from harness.contracts.state_changes import LogFiles
from tests.fake_cluster import FakeCluster

START, STOP = b'{"ev":"broker_start"}\n', b'{"ev":"broker_stop","controlled":true}\n'
KINDS = ("broker_start", "broker_stop")
BROKER = 1


@pytest.fixture
def cluster(tmp_path: Path) -> FakeCluster:
    return FakeCluster(root=tmp_path)


@pytest.mark.parametrize(
    ("content", "kinds"),
    [
        pytest.param(START + STOP, ["broker_start", "broker_stop"], id="both kinds"),
        pytest.param(b'{"ev":"append"}\n' + STOP, ["broker_stop"], id="other kinds are passed over"),
        pytest.param(START + STOP[:-5], ["broker_start"], id="a torn last line is not there yet"),
        pytest.param(b'{"ev":"broker_st' + START + STOP, ["broker_stop"], id="a line torn by a kill"),
        pytest.param(b'{"ev":"x","to":"broker_stop"}\n', [], id="the word alone is no event"),
        pytest.param(b"", [], id="nothing"),
    ],
)
async def test_whole_lines_of_the_kinds_asked_for(cluster: FakeCluster, content: bytes, kinds: list[str]) -> None:
    cluster.log_of(BROKER).write_bytes(content)
    events, _ = await LogFiles(cluster).after(BROKER, 0, *KINDS)
    assert [event["ev"] for event in events] == kinds


async def test_the_next_look_starts_where_the_last_one_ended(cluster: FakeCluster) -> None:
    path, logs = cluster.log_of(BROKER), LogFiles(cluster)
    path.write_bytes(START + STOP[:4])
    events, position = await logs.after(BROKER, 0, *KINDS)
    assert (len(events), position) == (1, len(START))
    with path.open("ab") as log:
        log.write(STOP[4:])
    events, position = await logs.after(BROKER, position, *KINDS)
    assert (len(events), position) == (1, await logs.end_of(BROKER))


async def test_a_line_that_is_being_written_when_the_log_is_first_looked_at_is_read_when_it_is_whole(
    cluster: FakeCluster,
) -> None:
    path, logs = cluster.log_of(BROKER), LogFiles(cluster)
    path.write_bytes(START + STOP[:4])
    position = await logs.end_of(BROKER)
    with path.open("ab") as log:
        log.write(STOP[4:])
    events, _ = await logs.after(BROKER, position, *KINDS)
    assert [event["ev"] for event in events] == ["broker_stop"]


async def test_a_log_that_is_not_there_says_nothing(cluster: FakeCluster) -> None:
    assert await LogFiles(cluster).end_of(BROKER) == 0
    assert await LogFiles(cluster).after(BROKER, 5, "x") == ([], 5)
    assert await LogFiles(cluster).dated(BROKER, 5) == (None, 5)


async def test_the_last_whole_line_says_what_the_brokers_clock_showed(cluster: FakeCluster) -> None:
    lines = b'{"ev":"x","ts":5}\n{"ev":"y","ts":7}\n'
    cluster.log_of(BROKER).write_bytes(lines + b'{"ev":"z","ts":9')
    logs = LogFiles(cluster)
    assert await logs.dated(BROKER, 0) == (7, len(lines))
    assert await logs.dated(BROKER, len(lines)) == (None, len(lines))


START_OF_1_1 = "kafka.zk.KafkaZkClient: Registered broker 1 at path /brokers/ids/1 with addresses: PLAINTEXT://h:1"
START_OF_2_4 = f"{START_OF_1_1}, czxid (broker epoch): 58"


@pytest.mark.parametrize(
    ("from_line", "events"),
    [
        pytest.param(0, [None, 58], id="lines of both"),
        pytest.param(1, [58], id="lines of the later one"),
        pytest.param(2, [], id="nothing new"),
    ],
)
async def test_each_line_is_understood_as_the_release_words_it_that_wrote_it(
    cluster: FakeCluster, from_line: int, events: list[int | None]
) -> None:
    cluster.system = "kafka:1.1.1"
    cluster.print(BROKER, START_OF_1_1)
    ends = [0, await LogFiles(cluster).end_of(BROKER)]
    await cluster.change_release(BROKER, "kafka:2.4.1")
    cluster.print(BROKER, START_OF_2_4)
    ends.append(await LogFiles(cluster).end_of(BROKER))
    seen, position = await LogFiles(cluster).after(BROKER, ends[from_line], "broker_registered")
    assert ([event["czxid"] for event in seen], position) == (events, ends[-1])


async def test_a_broker_says_which_release_it_is_since_a_position(cluster: FakeCluster) -> None:
    cluster.system = "kafka:3.3.2"
    version = "org.apache.kafka.common.utils.AppInfoParser: Kafka version: {}"
    cluster.print(BROKER, version.format("3.3.2"))
    position = await LogFiles(cluster).end_of(BROKER)
    assert await LogFiles(cluster).release(BROKER, 0) == "3.3.2"
    assert await LogFiles(cluster).release(BROKER, position) == ""
    await cluster.change_release(BROKER, "kafka:3.9.1")
    cluster.print(BROKER, version.format("3.9.1"))
    assert await LogFiles(cluster).release(BROKER, position) == "3.9.1"
