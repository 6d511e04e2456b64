"""Random scripts of client calls: drawn, encoded, played in virtual time, compared, shrunk; and what Kafka answered."""

import json
import time
from collections.abc import Sequence
from typing import Any

import pytest

from harness.broker.handlers.acls import AclHandlers
from harness.broker.handlers.apis import APIS
from harness.broker.log.batch import crc_matches, parse_header, parse_records
from harness.broker.wire.codec import encode_request
from harness.broker.wire.dispatch import Dispatcher
from harness.client_rules.scripts.answers import shown
from harness.client_rules.scripts.comparing import Difference, difference
from harness.client_rules.scripts.recorded import Recorded
from harness.client_rules.scripts.script import (
    ASK,
    AWAIT,
    BEGIN,
    KILL,
    RESTART,
    STOP,
    Script,
    Step,
    Symbols,
    request_of,
    script_of,
)
from harness.client_rules.scripts.target import Target
from harness.contracts.requests import REQUESTS, records_of
from harness.simulation.transport import MemoryTransport
from tests.broker.whole_cluster import HOST, WholeCluster, client_port
from tools.differential.generator import ROOMS, restarting_script_of_seed, script_of_seed, slow_script_of_seed
from tools.differential.intended import reason
from tools.differential.kept import kept
from tools.differential.shrinking import shrunk
from tools.differential.targets import OFTEN, PROPERTIES, SELDOM, common_versions

SERVED = {
    api.request.__name__.removesuffix("Request"): (api.versions.served_min, api.versions.max) for api in APIS.values()
}
OF_BROKERS = {"LeaderAndIsr", "StopReplica", "UpdateMetadata", "ControlledShutdown"}
WITHOUT_STATE = (Dispatcher, AclHandlers)
STATELESS = {
    api.request.__name__.removesuffix("Request")
    for api in APIS.values()
    if any(api.handler in vars(each).values() for each in WITHOUT_STATE)
}
SOME = 150


def scripts() -> list[Script]:
    return [make(1, number, SERVED) for number in range(SOME) for make in (script_of_seed, slow_script_of_seed)]


async def target(cluster: WholeCluster) -> Target:
    await cluster.start(0)
    one = Target(MemoryTransport(cluster.network, "client"), HOST, client_port(0))
    await one.warm_up()
    return one


def cluster_with(properties: dict[str, str]) -> WholeCluster:
    return WholeCluster(PROPERTIES | properties, wall_ms=int(time.time() * 1000), clocks_go=True)


def test_a_seed_gives_the_same_script_again_and_another_number_another_one() -> None:
    assert script_of_seed(1, 3, SERVED) == script_of_seed(1, 3, SERVED)
    assert len({json.dumps([step.as_json() for step in script]) for script in scripts()}) > 1.9 * SOME


def test_scripts_call_every_api_for_clients_in_versions_that_are_served() -> None:
    steps = [step for script in scripts() for step in script if step.how != AWAIT]
    called, served = {step.api for step in steps}, (REQUESTS.keys() & SERVED.keys()) - OF_BROKERS - STATELESS
    assert called == served, "a new API needs a call in tools/differential"
    assert not [step for step in steps if not SERVED[step.api][0] <= step.version <= SERVED[step.api][1]]
    for step in steps:
        encode_request(request_of(step, Symbols("d-")), step.version, correlation_id=1, client_id="c")


def test_a_script_is_the_same_after_json() -> None:
    script = script_of_seed(1, 1, SERVED)
    assert script_of(json.loads(json.dumps([step.as_json() for step in script]))) == script


def test_a_script_with_restarts_has_a_clean_stop_and_then_a_kill() -> None:
    for number in range(SOME):
        script = restarting_script_of_seed(1, number, SERVED)
        assert [step.api for step in script if step.how == RESTART] == [STOP, KILL]
        assert {step.how for step in script} == {ASK, RESTART}
        assert RESTART not in (script[0].how, script[-1].how)


def test_every_call_of_a_room_has_a_share() -> None:
    assert all(weight > 0 for calls in ROOMS.values() for weight in calls.values())


@pytest.mark.parametrize(
    ("symbol", "meaning"),
    [
        pytest.param("$t:2", "d-t2", id="a topic's name begins with the prefix of the play"),
        pytest.param("$m:0", "c-1", id="a member id that a broker gave"),
        pytest.param("$m:1", "unknown-member", id="a member id that no broker gave"),
        pytest.param("$p:0", 42, id="a producer id"),
        pytest.param("$e:0", 3, id="a producer's epoch"),
        pytest.param("$n:0", 5, id="a group's generation"),
        pytest.param("plain", "plain", id="a text without a symbol"),
    ],
)
def test_what_a_symbol_stands_for(symbol: str, meaning: str | int) -> None:
    symbols = Symbols("d-", members=["c-1"], producers=[42], epochs={42: 3}, generations={"d-g0": 5})
    assert symbols.meaning({"of": [symbol]}) == {"of": [meaning]}


@pytest.mark.parametrize("codec", range(5))
def test_a_batch_holds_its_records_in_each_codec(codec: int) -> None:
    batch = records_of({"records": [["k", "v", 0], [None, 100, 5]], "codec": codec, "producer": 7})
    header = parse_header(batch)
    assert (header.codec, header.producer_id, crc_matches(batch, header)) == (codec, 7, True)
    assert [(each.key, len(each.value or b"")) for each in parse_records(batch)] == [(b"k", 1), (None, 100)]


@pytest.mark.parametrize(
    ("damage", "size", "crc"),
    [
        pytest.param({"cut": 3}, -3, False, id="a batch that is cut short"),
        pytest.param({"flip": 65}, 0, False, id="a batch with a damaged byte"),
        pytest.param({"header": {"records_count": 7}}, 0, True, id="a batch with a wrong header and a right CRC"),
    ],
)
def test_a_batch_can_be_damaged(damage: dict[str, Any], size: int, crc: bool) -> None:
    whole, damaged = (records_of({"records": [["k", "v", 0]], **more}) for more in ({}, damage))
    assert len(damaged) - len(whole) == size
    assert damaged != whole
    assert crc_matches(damaged, parse_header(damaged)) == crc


def answer_to(step: Step, **fields: Any) -> Any:
    response = APIS[REQUESTS[step.api].API_KEY].response(version=step.version)
    for name, value in fields.items():
        setattr(response, name, value)
    return response


def test_an_answer_is_shown_without_what_differs_from_play_to_play() -> None:
    join = Step(api="JoinGroup", version=5)
    joined = {"generation_id": 1, "leader": "c-77", "member_id": "c-77", "members": []}
    begun = Step(api="InitProducerId", version=1)
    for prefix, producer_id in (("a-", 4), ("b-", 9)):
        symbols = Symbols(prefix)
        of_join = shown(join, answer_to(join, **joined), symbols)
        assert (of_join["leader"], of_join["member_id"], of_join["generation_id"]) == ("$m:0", "$m:0", 1)
        assert shown(begun, answer_to(begun, producer_id=producer_id), symbols)["producer_id"] == "$p:0"


def test_a_batch_in_an_answer_is_shown_by_its_records_and_an_incomplete_one_is_left_out() -> None:
    step = Step(api="Fetch", version=4)
    of_topic = APIS[REQUESTS["Fetch"].API_KEY].response.FetchableTopicResponse  # type: ignore[attr-defined]
    whole = records_of({"records": [["k", "v", 1]]})
    partition = of_topic.PartitionData(partition_index=0, records=whole + whole[:20])
    answer = answer_to(step, responses=[of_topic(topic="t", partitions=[partition])])
    (batch,) = shown(step, answer, Symbols("d-"))["responses"][0]["partitions"][0]["records"]
    assert (batch["codec"], batch["records"]) == ("none", [[0, "k", "v", 1]])


@pytest.mark.parametrize(
    ("ours", "theirs", "places"),
    [
        pytest.param({"error": 1}, {"error": 2}, ("error 1 ≠ 2",), id="a field"),
        pytest.param([{"a": 1}], [{"a": None}], ("[].a 1 ≠ None",), id="a field of an element"),
        pytest.param({"x": []}, {"x": [1]}, ("x has 0 ≠ 1: [] ≠ [1]",), id="an element that one side lacks"),
        pytest.param({}, {"x": 1}, ("x 'missing' ≠ 1",), id="a field that one side lacks"),
        pytest.param("closed", {"x": 1}, (" 'closed' ≠ {'x': 1}",), id="a connection that one side closes"),
    ],
)
def test_the_places_of_a_difference(ours: object, theirs: object, places: Sequence[str]) -> None:
    assert Difference(at=0, step=Step(api="Fetch", version=4), ours=ours, theirs=theirs).places == places


def test_the_first_difference_is_of_the_step_that_was_begun() -> None:
    script = (
        Step(api="JoinGroup", version=1, how=BEGIN),
        Step(api="SyncGroup", version=1, how=BEGIN),
        Step(api="SyncGroup", version=0, how=AWAIT),
    )
    first = difference(script, [BEGIN, BEGIN, 1, 2], [BEGIN, BEGIN, 1, 3])
    assert first is not None
    assert (first.at, first.step.api) == (3, "SyncGroup")
    assert difference(script, [BEGIN, BEGIN, 1, 2], [BEGIN, BEGIN, 1, 2]) is None


async def test_a_script_is_shrunk_to_what_shows_the_difference() -> None:
    def step(number: int) -> Step:
        return Step(api="Fetch", version=4, fields={"number": number, "more": [1, 2, number], "else": {"x": 1}})

    async def shows(script: Script) -> bool:
        numbers = [each.fields.get("number") for each in script]
        return {3, 7} <= set(numbers) and any(7 in each.fields.get("more", ()) for each in script)

    smallest = await shrunk(tuple(map(step, range(20))), shows)
    assert [each.fields for each in smallest] == [{"number": 3}, {"number": 7, "more": [7]}]


@pytest.mark.parametrize("make", [script_of_seed, slow_script_of_seed])
async def test_one_broker_answers_the_same_script_alike(make: Any) -> None:
    async with cluster_with(OFTEN if make is slow_script_of_seed else SELDOM) as cluster:
        broker = await target(cluster)
        versions = common_versions(await broker.versions(), await broker.versions())
        for number in range(3):
            script = make(1, number, versions)
            first, again = [await broker.play(script, f"{play}{number}-") for play in "ab"]
            assert difference(script, first, again) is None


@pytest.mark.parametrize("each", [pytest.param(each, id=each.about) for each in kept()])
async def test_a_kept_script_is_answered_as_by_kafka(each: Recorded) -> None:
    async with cluster_with(SELDOM) as cluster:
        answers = await (await target(cluster)).play(each.script, "kept-")
    first = difference(each.script, answers, each.answers, reason)
    assert first is None, (first.step.as_json(), first.places)
