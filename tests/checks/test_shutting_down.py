from tests.analysis.protocol_rows import S, believed, registered
from tests.checks.answers import fails, passes, table_of

HELD = [registered(1, 11), registered(2, 12), registered(3, 13, leaves_ns=9 * S)]

CASES = {
    "nothing is leaving": passes(*HELD, believed([1, 2, 3])),
    "a broker that has asked is leaving": passes(*HELD, believed([1, 2], [3])),
    "a broker that has not asked is leaving": fails(
        *HELD,
        believed([1, 3], [2]),
        text=(
            "left broker 2 out of the election of orders-0, and broker 2 has not asked since its registration at "
            "zxid 12"
        ),
        facts=["beliefs", "registrations"],
    ),
    "one that has not asked beside one that has": fails(*HELD, believed([1], [2, 3]), text="broker 2"),
    "two that have not asked": fails(*HELD, believed([3], [1, 2]), severities=["violation"] * 2),
    "it asked in an earlier registration": fails(
        *HELD, registered(2, 5, leaves_ns=S, until_zxid=6), believed([1, 3], [2]), text="registration at zxid 12"
    ),
    "it has asked in a registration that the controller has not read": passes(
        *HELD, registered(2, 15, leaves_ns=4 * S), believed([1, 3], [2], made_ns=5 * S)
    ),
    "it asks later in a registration that the controller has not read": fails(
        *HELD, registered(2, 15, leaves_ns=6 * S), believed([1, 3], [2], made_ns=5 * S), text="registration at zxid 12"
    ),
    "the controller is about to learn that it came back": passes(
        *HELD, believed([1, 3], [2], certain=[1, 3], czxids=[11, 13])
    ),
    "the broker itself says that it registered": passes(
        *HELD, registered(3, 13, source="broker"), believed([1, 2], [3])
    ),
}

CASES |= CASES["nothing is leaving"].without_each("beliefs", "registrations")

test_which_brokers_are_leaving = table_of("shutting-down", CASES)
