"""Transactional loads in virtual time: what their histories show, without faults and with them."""

from collections import Counter, defaultdict
from functools import cache

from harness.scenario.file import load_scenario
from harness.simulation.schedule import SimulatedHistory, simulate
from harness.store.history import READ_COMMITTED, Operation, OpKind, OpType

END = {OpKind.COMMIT_TRANSACTION, OpKind.ABORT_TRANSACTION}


@cache
def of(scenario: str) -> SimulatedHistory:
    return simulate(load_scenario(f"tools/{scenario}.yaml"), 1)


def ended(history: SimulatedHistory, *kinds: OpKind) -> list[Operation]:
    of_all = (each for operations in history.operations.values() for each in operations)
    return [each for each in of_all if each.kind in kinds and each.type is not OpType.INVOKE]


def committed(history: SimulatedHistory) -> set[tuple[str, int]]:
    ends = ended(history, OpKind.COMMIT_TRANSACTION)
    return {(each.process, each.transaction) for each in ends if each.type is OpType.OK}


def values_read(history: SimulatedHistory, isolation: str) -> set[str]:
    polls = [each for each in ended(history, OpKind.POLL) if each.isolation == isolation and not each.group]
    return {record.value for each in polls for record in each.records}


def test_read_committed_readers_get_the_records_of_committed_transactions() -> None:
    history = of("transactions-light")
    sends = [each for each in ended(history, OpKind.SEND) if each.transaction >= 0 and each.type is OpType.OK]
    done = committed(history)
    by_outcome: defaultdict[bool, set[str]] = defaultdict(set)
    for each in sends:
        by_outcome[(each.process, each.transaction) in done].add(each.value)
    read = values_read(history, READ_COMMITTED)
    assert len(by_outcome[True]) > 50
    assert by_outcome[True] <= read
    assert len(by_outcome[False]) > 10
    assert not by_outcome[False] & read
    assert history.remarks == []


def test_doubles_fence_each_other() -> None:
    fenced = [each for each in ended(of("transactions-light"), *END) if each.error == "PRODUCER_FENCED"]
    assert fenced
    assert {each.type for each in fenced} <= {OpType.FAIL, OpType.INFO}


def test_each_input_has_one_committed_output() -> None:
    history = of("exactly-once-light")
    done = committed(history)
    sends = ended(history, OpKind.SEND)
    inputs = {each.value for each in sends if each.topic == "orders" and each.type is OpType.OK}
    outputs = Counter(each.made_from for each in sends if (each.process, each.transaction) in done)
    assert len(inputs) > 50
    assert set(outputs.values()) == {1}
    assert inputs <= outputs.keys()
    assert history.remarks == []
