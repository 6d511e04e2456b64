"""What producers write beside ids, and what listers ask for: known by its id again, and the same for one seed."""

from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import Any

from harness.client_rules.listing import LEADER, READ_BYTES, READ_RECORDS, REPLICA, Inquiry, Listing
from harness.client_rules.sending import Sending
from harness.contracts.workloads import ClientPlan
from harness.store.history import Operation, OpKind, OpType
from harness.store.recording import Recorder
from harness.values import value_id

NOW_MS = 1_000_000


def plan(**parameters: Any) -> ClientPlan:
    return ClientPlan(
        process="client-1",
        workload="produce-consume",
        role="any",
        bootstrap_servers="",
        topics={"orders": 2, "events": 1},
        seed=7,
        parameters={"keys": 9, "acks": -1, "message_timeout_ms": 1000, "value_bytes": 0, **parameters},
    )


def recorder() -> Recorder:
    return Recorder("client-1", lambda _: None, lambda: 0)


def contents(**parameters: Any) -> Iterator[tuple[Operation, Any]]:
    rules = Sending(plan(**parameters), recorder())
    for _ in range(200):
        invoked = rules.invoke()
        yield invoked, rules.content(invoked, NOW_MS)


def test_whatever_a_record_holds_it_is_known_by_its_id() -> None:
    mixed = list(contents(nulls=0.3, headers=2, padding_bytes=50, disorder_ms=500))
    assert all(value_id(content.value, content.headers) == invoked.value for invoked, content in mixed)
    assert len({invoked.value for invoked, _ in mixed}) == len(mixed)
    assert 20 < sum(content.value is None for _, content in mixed) < 100
    assert len({len(content.value or b"") for _, content in mixed}) > 20
    instants = [content.timestamp_ms for _, content in mixed]
    assert NOW_MS - 500 <= min(instants) < max(instants) <= NOW_MS
    assert instants != sorted(instants)
    assert [each for _, each in mixed] == [
        each for _, each in contents(nulls=0.3, headers=2, padding_bytes=50, disorder_ms=500)
    ]


def test_a_plain_record_is_its_id_now() -> None:
    for invoked, content in contents():
        assert (content.value, content.headers, content.timestamp_ms) == (invoked.value.encode(), (), NOW_MS)


def inquiries(deletes: list[str]) -> Iterator[tuple[Listing, Inquiry]]:
    rules = Listing(plan(list_interval_s=0.1, read_share=0.0, delete_records_of=deletes), recorder(), lambda: NOW_MS)
    for _ in range(3000):
        inquiry = rules.next()
        rules.answered(inquiry, 10 if inquiry.invoked.mode == "earliest" else 40)
        yield rules, inquiry


def test_a_lister_asks_for_every_kind_of_offset_of_every_partition() -> None:
    asked = Counter((inquiry.partition, inquiry.invoked.mode) for _, inquiry in inquiries([]))
    assert len(asked) == 3 * 3
    ago_ms = [NOW_MS - inquiry.timestamp_ms for _, inquiry in inquiries([]) if inquiry.invoked.mode == "timestamp"]
    assert min(ago_ms) >= 0
    assert 0.4 < sum(each <= 200 for each in ago_ms) / len(ago_ms) < 0.6, "half of them are near the newest records"


def test_a_lister_deletes_records_only_where_it_may_and_only_what_is_there() -> None:
    deleted = [inquiry for _, inquiry in inquiries(["events"]) if inquiry.deletes]
    assert deleted
    assert {inquiry.partition for inquiry in deleted} == {("events", 0)}
    once_told = {inquiry.invoked.offset for inquiry in deleted[10:]}
    assert (min(once_told), max(once_told)) == (10, 40)
    assert all(0 <= inquiry.invoked.offset <= 40 for inquiry in deleted)
    assert not any(inquiry.deletes for _, inquiry in inquiries([]))


def test_a_lister_reads_from_offsets_that_it_knows_and_records_the_first_records() -> None:
    lines: list[Operation] = []
    rules = Listing(
        plan(list_interval_s=0.1, read_share=0.5, delete_records_of=[]),
        Recorder("c", lines.append, lambda: 0),
        lambda: NOW_MS,
        (LEADER, REPLICA),
    )
    reads: list[Inquiry] = []
    for _ in range(3000):
        inquiry = rules.next()
        if inquiry.reads:
            reads.append(inquiry)
            rules.read(inquiry, [(each, f"v{each}") for each in range(READ_RECORDS + 5)])
        else:
            rules.answered(inquiry, 10 if inquiry.invoked.mode == "earliest" else 40)
    assert 0.45 < len(reads) / 3000 < 0.55
    later = reads[30:]
    assert {each.invoked.offset for each in later} == set(range(10, 41)), (
        "those before all partitions are known begin at 0"
    )
    assert {(each.invoked.mode, each.max_bytes) for each in later} == set(product((LEADER, REPLICA), READ_BYTES))
    ends = [each for each in lines if each.kind is OpKind.READ and each.type is OpType.OK]
    assert ends[0].value.split() == [f"{each}=v{each}" for each in range(READ_RECORDS)]


def test_whether_a_refused_deletion_took_effect_is_unknown() -> None:
    ends: list[Operation] = []
    rules = Listing(
        plan(list_interval_s=0.1, read_share=0.0, delete_records_of=["events"]),
        Recorder("c", ends.append, lambda: 0),
        lambda: NOW_MS,
    )
    for _ in range(3000):
        inquiry = rules.next()
        if inquiry.invoked.mode == "latest":
            rules.answered(inquiry, 40)
        else:
            rules.refused(inquiry, "away")
    outcomes = {(each.kind, each.type) for each in ends if each.type in (OpType.FAIL, OpType.INFO)}
    assert outcomes == {(OpKind.LIST_OFFSET, OpType.FAIL), (OpKind.DELETE_RECORDS, OpType.INFO)}
