from dataclasses import replace

from tests.analysis.fact_rows import Row
from tests.analysis.protocol_rows import in_force, injected, version_of
from tests.checks.answers import STRICT, Case, fails, passes, table_of

SETTINGS = replace(STRICT, session_timeout_ms=4_000, inherited_by_topics="min.insync.replicas=2;retention.ms=7")
NOT_STATED = replace(SETTINGS, inherited_by_topics="min.insync.replicas=2")
TOPIC, BROKER, ALL = "topics/orders", "brokers/1", "brokers/<default>"


def sound(*rows: Row) -> Case:
    return passes(*rows, settings=SETTINGS)


def wrong(*rows: Row, text: str = "") -> Case:
    return fails(*rows, settings=SETTINGS, text=text)


def changed(value: str, *, at_s: float, noted: bool = True) -> list[Row]:
    """The topic had 5 until `at_s`, and has 6 since; broker 1 acts on `value`."""
    before = version_of(TOPIC, "5", until_s=at_s, noted=noted)
    return [in_force(value), before, version_of(TOPIC, "6", from_s=at_s)]


UNSET = version_of(TOPIC, None)
CREATED = version_of(TOPIC, None, until_s=10, noted=False, ended_by="create", time_ns=None)
CREATED_FIRST = version_of(TOPIC, None, until_s=5, noted=False, ended_by="create", time_ns=None)
DELETED = version_of(TOPIC, "5", until_s=10, noted=False, ended_by="delete")
REMADE = version_of(TOPIC, None, from_s=10, until_s=15, noted=False, ended_by="create")

CASES = {
    "a replica acts on what its topic sets": sound(in_force("5"), version_of(TOPIC, "5")),
    "it acts on another value": wrong(
        in_force("7"),
        version_of(TOPIC, "5"),
        text="broker 1 acted for 40.0 s on retention.ms=7 instead of 5 for orders",
    ),
    "two properties are wrong": wrong(
        in_force("7"),
        in_force("1", name="min.insync.replicas"),
        version_of(TOPIC, "5"),
        version_of(TOPIC, "3", property="min.insync.replicas"),
        text="on min.insync.replicas=1 instead of 3, retention.ms=7 instead of 5 for orders",
    ),
    "another topic sets it": wrong(in_force("5"), UNSET, version_of("topics/other", "5"), text="instead of 7"),
    "the topic sets another property": sound(
        in_force("7"), UNSET, version_of(TOPIC, "5", property="min.insync.replicas")
    ),
    "the topic sets nothing, and the properties file holds": sound(in_force("7"), UNSET),
    "the topic sets nothing, and another value is in force": wrong(in_force("5"), UNSET, text="5 instead of 7"),
    "its broker sets it": sound(in_force("8"), UNSET, version_of(BROKER, "8")),
    "its broker sets it, and all brokers something else": wrong(
        in_force("9"), UNSET, version_of(BROKER, "8"), version_of(ALL, "9"), text="9 instead of 8"
    ),
    "all brokers set it": sound(in_force("9"), UNSET, version_of(BROKER, None), version_of(ALL, "9")),
    "all brokers set it, and the properties file is in force": wrong(
        in_force("7"), UNSET, version_of(BROKER, None), version_of(ALL, "9"), text="7 instead of 9"
    ),
    "its broker sets it, and the properties file is in force": wrong(
        in_force("7"), UNSET, version_of(BROKER, "8"), version_of(ALL, None), text="7 instead of 8"
    ),
    "another broker sets it": wrong(in_force("8"), UNSET, version_of("brokers/2", "8")),
    "the topic sets it, and its broker's value is in force": wrong(
        in_force("8"), version_of(TOPIC, "5"), version_of(BROKER, "8"), text="8 instead of 5"
    ),
    "the topic sets it, and what all brokers have is in force": wrong(
        in_force("9"), version_of(TOPIC, "5"), version_of(ALL, "9"), text="9 instead of 5"
    ),
    "no version of the topic is known": sound(in_force("5"), version_of("topics/other", "5")),
    # changes
    "a change is in force": sound(*changed("6", at_s=30)),
    "a change is not in force": wrong(*changed("5", at_s=30), text="5 instead of 6"),
    "a change is younger than a session time-out and 5 s": sound(*changed("5", at_s=50.9)),
    "a change is a little older": wrong(
        in_force("5"),
        version_of(TOPIC, "5", until_s=50.9, noted_ns=51 * 10**9 - 1),
        version_of(TOPIC, "6", from_s=50.9),
    ),
    "a change has no notification": sound(*changed("5", at_s=30, noted=False)),
    "a change came after the line was over": wrong(*changed("6", at_s=62), text="6 instead of 5"),
    "a change came after the line was over, by a clock that may be off": sound(*changed("6", at_s=61)),
    "a change was over before the broker began": wrong(
        in_force("5", began_ns=31 * 10**9 + 1, time_ns=33 * 10**9), *changed("5", at_s=30, noted=False)[1:]
    ),
    "a change came while the broker began": sound(
        in_force("5", began_ns=31 * 10**9, time_ns=33 * 10**9), *changed("5", at_s=30, noted=False)[1:]
    ),
    "the life has no beginning": sound(in_force("5", began_ns=None), *changed("5", at_s=30, noted=False)[1:]),
    "the broker was disturbed in the end": sound(
        *changed("5", at_s=30), injected(fault="isolate", intended_ns=40 * 10**9, healed_s=50)
    ),
    "the broker was disturbed, and acts on what was never set": wrong(
        *changed("4", at_s=30),
        injected(fault="isolate", intended_ns=40 * 10**9, healed_s=50),
        text="4 instead of 5 or 6",
    ),
    "the broker was disturbed long before the end": wrong(
        *changed("5", at_s=30), injected(fault="isolate", intended_ns=40 * 10**9, healed_s=48)
    ),
    "a session ended": wrong(
        *changed("5", at_s=30), injected(fault="expire-session", intended_ns=40 * 10**9, healed_s=59)
    ),
    "a change of its broker is in force before that of its topic": sound(
        in_force("8"), version_of(TOPIC, "5", until_s=55), version_of(TOPIC, None, from_s=55), version_of(BROKER, "8")
    ),
    "its broker's own configuration is written first, and no notification tells of it": sound(
        in_force("7"),
        UNSET,
        version_of(BROKER, None, until_s=10, noted=False, ended_by="create"),
        version_of(BROKER, "8", from_s=10),
    ),
    # topics come and go
    "a topic is there before its log": wrong(in_force("7"), CREATED, version_of(TOPIC, "5", from_s=10)),
    "a server of ZooKeeper is behind when a topic is created": sound(
        in_force("7", time_ns=11 * 10**9), CREATED, version_of(TOPIC, "5", from_s=10)
    ),
    "a topic that was created again does not keep what it had": wrong(
        in_force("5"), DELETED, REMADE, version_of(TOPIC, "6", from_s=15), text="5 instead of 6"
    ),
    "a topic was deleted just before": sound(
        in_force("5", time_ns=19 * 10**9), DELETED, REMADE, version_of(TOPIC, "6", from_s=15)
    ),
    "a replica that was moved away keeps what its topic had before it was deleted": sound(
        in_force("5"), CREATED_FIRST, DELETED, version_of(TOPIC, None, from_s=10)
    ),
    "a topic that was created again in the instant in which it was deleted": wrong(
        *(in_force("5"), DELETED, version_of(TOPIC, None, from_s=10, until_s=10, noted=False, ended_by="create")),
        version_of(TOPIC, "6", from_s=10),
    ),
    "a topic that was created twice": wrong(
        *(in_force("5"), CREATED_FIRST, DELETED, REMADE, version_of(TOPIC, "6", from_s=15)), text="5 instead of 6"
    ),
    "a change is not read yet, long before the topic is created again": sound(
        in_force("4", time_ns=19 * 10**9, until_ns=20 * 10**9),
        version_of(TOPIC, "4", until_s=17),
        version_of(TOPIC, "5", from_s=17, until_s=30, noted=False, ended_by="delete"),
        version_of(TOPIC, None, from_s=30, until_s=40, noted=False, ended_by="create"),
        version_of(TOPIC, "6", from_s=40),
    ),
    "nothing else, though": wrong(
        in_force("4"), CREATED_FIRST, DELETED, version_of(TOPIC, None, from_s=10), text="4 instead of 5 or 7"
    ),
    "a topic is deleted while its log is there": sound(
        in_force("5"),
        version_of(TOPIC, "5", until_s=30, noted=False, ended_by="delete"),
        version_of(TOPIC, None, from_s=30),
    ),
    "what brokers state of one property is not known": passes(in_force("7"), UNSET, settings=NOT_STATED),
    "what brokers state of a property is not known, and the topic sets it": fails(
        in_force("7"), version_of(TOPIC, "5"), settings=NOT_STATED, text="7 instead of 5"
    ),
}

CASES |= CASES["a replica acts on what its topic sets"].without_each("configurations", "property_versions")

test_configurations_in_force = table_of("configuration-in-force", CASES)
