from tests.analysis.protocol_rows import S, believed, gone_through, injected, registered
from tests.checks.answers import fails, passes, table_of

HELD = [registered(broker, 10 + broker, time_ns=0, seen_ns=60 * S) for broker in (1, 2, 3)]

CASES = {
    "an election goes by what was read": passes(*HELD, believed([1, 2, 3])),
    "it takes a broker for alive that was not read": fails(
        *HELD,
        believed([1, 2, 3, 4]),
        text="the election of orders-0 by controller 1 takes [4] for alive; 4.0 s before the controller had read that "
        "[1, 2, 3] are registered",
        facts=["beliefs", "controller_passes"],
    ),
    "it leaves a broker out": fails(*HELD, believed([1, 2]), text="controller 1 leaves out [3]"),
    "it takes one for another": fails(*HELD, believed([1, 2, 4]), text="takes [4] for alive and leaves out [3]"),
    "the broker that it leaves out is leaving": passes(*HELD, believed([1, 2], [3])),
    "the disk of the broker that it leaves out fails": passes(
        *HELD, believed([1, 2]), injected(fault="disk-full", targets=["3"], healed_s=1)
    ),
    "the broker that it leaves out may open no more files": passes(
        *HELD, believed([1, 2]), injected(fault="file-limit", targets=["3"], healed_s=1)
    ),
    "a fault is in force that leaves the disk alone": fails(
        *HELD, believed([1, 2]), injected(fault="kill", targets=["3"], healed_s=1)
    ),
    "the disk of another broker fails": fails(
        *HELD, believed([1, 2]), injected(fault="disk-error", targets=["2"], healed_s=1)
    ),
    "while it acts on what it has read it may go by either": passes(
        *HELD,
        believed([1, 2, 3]),
        believed([1, 2], certain=[1, 2]),
        believed([1, 2, 3], possible=[1, 2, 3], certain=[]),
    ),
    "UpdateMetadata names a broker that was not read": fails(
        *HELD, believed([1, 2, 3, 4], acted="metadata"), text="UpdateMetadata of controller 1 takes [4] for alive"
    ),
    "UpdateMetadata without brokers that are leaving": fails(*HELD, believed([1, 2], acted="metadata", leaving=None)),
    "the controller finds what is registered": passes(*HELD, believed([1, 2, 3]), gone_through([1, 2, 3])),
    "it finds a broker whose registration had ended": fails(
        *HELD[:2],
        registered(3, 13, time_ns=0, until_ns=8 * S, seen_ns=8 * S, until_zxid=20),
        believed([1, 2, 3]),
        gone_through([1, 2, 3]),
        text="in a BrokerChange controller 1 found broker 3, whose registration had ended 2.0 s before",
        facts=["controller_passes", "registrations"],
    ),
    "the registration had ended a little too long before": fails(
        *HELD[:2],
        registered(3, 13, time_ns=0, until_ns=9 * S - 1, seen_ns=9 * S - 1, until_zxid=20),
        believed([1, 2, 3]),
        gone_through([1, 2, 3]),
    ),
    "the registration had ended just before": passes(
        *HELD[:2],
        registered(3, 13, time_ns=0, until_ns=9 * S, seen_ns=9 * S, until_zxid=20),
        believed([1, 2, 3]),
        gone_through([1, 2, 3]),
    ),
    "it does not find a broker that is registered": fails(
        *HELD, believed([1, 2, 3]), gone_through([1, 2]), text="did not find broker 3, registered 10.0 s before"
    ),
    "the broker registered just before": passes(
        *HELD[:2], registered(3, 13, time_ns=9 * S, seen_ns=60 * S), believed([1, 2, 3]), gone_through([1, 2])
    ),
    "the broker was about to go": passes(
        *HELD[:2],
        registered(3, 13, time_ns=0, until_ns=12 * S, seen_ns=12 * S, until_zxid=20),
        believed([1, 2, 3]),
        gone_through([1, 2]),
    ),
    "the broker went long after": fails(
        *HELD[:2],
        registered(3, 13, time_ns=0, until_ns=13 * S, seen_ns=13 * S, until_zxid=20),
        believed([1, 2, 3]),
        gone_through([1, 2]),
    ),
    "brokers are stopped after the history of ZooKeeper was copied": passes(
        *HELD[:2], registered(3, 13, time_ns=0, seen_ns=12 * S), believed([1, 2, 3]), gone_through([1, 2])
    ),
    "a broker that says itself that it registered": passes(
        *HELD, registered(4, 14, source="broker"), believed([1, 2, 3]), gone_through([1, 2, 3])
    ),
}

CASES |= CASES["an election goes by what was read"].without_each("beliefs", "registrations")

test_by_which_brokers_controllers_go = table_of("live-brokers", CASES)
