from tests.analysis.protocol_rows import registered
from tests.checks.answers import fails, passes, table_of, unknown

CASES = {
    "owner and broker agree": passes(registered(1), registered(1, source="broker")),
    "each life has its session": passes(
        registered(1, until_zxid=20),
        registered(1, 30, session="0x2"),
        registered(1, 30, session="0x2", source="broker"),
    ),
    "only ZooKeeper has it": unknown(registered(1), text="of both ZooKeeper and its broker"),
    "ZooKeeper has one broker, the logs another": unknown(registered(1), registered(2, source="broker")),
    "ZooKeeper has one life, the log another": unknown(registered(1), registered(1, 30, source="broker")),
    "of one life only ZooKeeper tells": passes(
        registered(1, until_zxid=20), registered(1, 30, session="0x2"), registered(1, source="broker")
    ),
    "the broker lives by another session": fails(
        registered(1),
        registered(1, session="0x2", source="broker"),
        text="sessions 0x1 and 0x2 claim the registration of broker 1 of zxid 10",
    ),
    "the broker's session owns no registration": fails(
        registered(1),
        registered(1, source="broker"),
        registered(1, None, session="0x2", source="broker"),
        text="broker 1 says that it registered in session 0x2, which owns no registration of it",
    ),
    "two of the broker's sessions own no registration": fails(
        registered(1),
        registered(1, source="broker"),
        registered(1, None, session="0x2", source="broker"),
        registered(1, None, session="0x3", source="broker"),
        severities=["violation", "violation"],
    ),
    "the broker does not say by which session": passes(
        registered(1), registered(1, source="broker"), registered(1, None, session="", source="broker")
    ),
    "no broker registered": unknown(text="registrations"),
}

test_whose_registration_it_is = table_of("I18", CASES)
