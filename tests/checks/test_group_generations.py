from typing import Any

from tests.analysis.fact_rows import Row, elected_uncleanly, led
from tests.analysis.group_rows import in_state, loaded, owned, read_in, reported, stored
from tests.checks.answers import POWER_LOSS, UNCLEAN, UNHEARD, Case, excused, fails, passes, table_of, unknown

LED = led(1, 0)
STABLE, PREPARING, COMPLETING, DEAD = "Stable", "PreparingRebalance", "CompletingRebalance", "Dead"
SECOND = in_state(STABLE, 2, "a", seq=5)
LOADED = loaded(epoch=4)
FORGOTTEN = (SECOND, LOADED)


def sound(*rows: Row, **wanted: Any) -> Case:
    return passes(LED, *rows, **wanted)


def broken(*rows: Row, **wanted: Any) -> Case:
    return fails(LED, *rows, **wanted)


CASES = {
    "generations grow": sound(
        in_state(PREPARING, 0, seq=1),
        in_state(COMPLETING, 1, seq=2),
        in_state(STABLE, 1, seq=3),
        in_state(COMPLETING, 2, seq=4),
    ),
    "one goes back": broken(
        in_state(STABLE, 2, seq=1),
        in_state(PREPARING, 1, seq=2),
        text="on broker 1 group g went from generation 2 to 1 in coordinator epoch 3",
        shown='"before":{"generation":2,"state":"Stable","seq":1}',
    ),
    "a group that ended begins anew": sound(in_state(DEAD, 7, seq=1), in_state(COMPLETING, 1, seq=2)),
    "another group is behind": sound(in_state(STABLE, 7, seq=1), in_state(STABLE, 1, seq=2, group="h")),
    "the next coordinator has the generation that was stored": sound(*FORGOTTEN, read_in(STABLE, 2, "a")),
    "it has a later one, which no member received": sound(*FORGOTTEN, read_in(STABLE, 3, "a")),
    "it has an older one": broken(
        *FORGOTTEN,
        read_in(STABLE, 1, "a"),
        text=(
            "generation 2 of group g was stored in coordinator epoch 3, and in epoch 4 broker 2 loaded generation 1."
        ),
        shown=(
            '"stored":{"coordinator_epoch":3,"seq":5,"generation":2,"time_ns":5000000000,"broker":1,'
            '"incarnation":"inc-1"}'
        ),
    ),
    "it knows nothing of the group": broken(*FORGOTTEN, text="broker 2 loaded no such group"),
    "it knows nothing of the group, which comes as far anew": broken(
        *FORGOTTEN, in_state(COMPLETING, 2, epoch=4, seq=9), text="broker 2 loaded no such group"
    ),
    "its disk would not give it the log": sound(SECOND, loaded(epoch=4, disk_error="the disk is gone")),
    "a log of an earlier release, which says nothing of the disk": broken(
        SECOND, ("group_loads", LOADED[1] | {"disk_error": None}), text="no such group"
    ),
    "it has never loaded that partition": sound(SECOND),
    "it has loaded another partition": sound(SECOND, ("group_loads", LOADED[1] | {"partition": 1})),
    "it has only stopped to coordinate it": sound(SECOND, loaded(epoch=4, kind="unload")),
    "it loaded before that was stored, in an older epoch": sound(loaded(epoch=2, broker=2), SECOND),
    "the load is that of the same epoch": sound(loaded(epoch=3), SECOND),
    "a generation that was begun and not stored is begun again": sound(
        SECOND, in_state(COMPLETING, 3, seq=6), LOADED, read_in(STABLE, 2, "a"), in_state(COMPLETING, 3, epoch=4, seq=1)
    ),
    "an empty generation may not have been stored": sound(
        SECOND, in_state("Empty", 3, seq=6), LOADED, read_in(STABLE, 2, "a")
    ),
    "nothing was left of the group": sound(SECOND, in_state(DEAD, 3, seq=6, reason="nothing is left of it"), LOADED),
    "the coordinator had moved": broken(
        SECOND, in_state(DEAD, 2, seq=6, reason="the coordinator moved"), LOADED, text="no such group"
    ),
    "it is two coordinators later": broken(
        SECOND, LOADED, read_in(STABLE, 2, "a"), loaded(epoch=5), text="in epoch 5 broker 3 loaded no such group"
    ),
    "the same members have the same partitions": sound(
        *stored("a", 0, 1),
        *stored("b"),
        *stored("b", epoch=4, reason="loaded"),
        *stored("a", 1, 0, epoch=4, reason="loaded"),
    ),
    "a member is forgotten": broken(
        *stored("a", 0),
        *stored("b"),
        *stored("a", 0, epoch=4, reason="loaded"),
        text="in epoch 4 broker 2 loaded it as a-orders-0 where it had been a-orders-0, b.",
    ),
    "its only member is forgotten": broken(
        *stored("a", 0), ("group_generations", stored("a", epoch=4, reason="loaded")[0][1] | {"owner": None})
    ),
    "what members were told is no measure": sound(reported("a", 0), *stored("a", 0, 1, epoch=4, reason="loaded")),
    "its log was longer": broken(*stored("a", 0, seq=9), *stored("a", 1, seq=1, epoch=4, reason="loaded")),
    "a member has another partition": broken(*stored("a", 0), *stored("a", 1, epoch=4, reason="loaded")),
    "an instance has another id": sound(*stored("a/i", 0), *stored("b/i", 0, epoch=4, reason="loaded")),
    "an instance came back before": sound(
        *stored("a", 0),
        *stored("b", 0, seq=1, reason="replaced"),
        *stored("b", 0, epoch=4, reason="loaded"),
    ),
    "a generation was stored several times, and the lines come in another order": sound(
        *(row for seq in reversed(range(8)) for row in stored("a", seq, seq=seq)),
        *stored("a", 7, epoch=4, reason="loaded"),
    ),
    "a later generation has other members": sound(
        *stored("a", 0), *stored("b", 0, generation=2, epoch=4, reason="loaded")
    ),
    "a generation that was stored again has other members": sound(*stored("a", 0), *stored("b", 0, epoch=4)),
    "an unclean election took it": excused(
        LED, elected_uncleanly(2, 1, topic="__consumer_offsets"), *FORGOTTEN, settings=UNCLEAN
    ),
    "an unclean election does not make generations go back": broken(
        elected_uncleanly(2, 1, topic="__consumer_offsets"),
        in_state(STABLE, 2, seq=1),
        in_state(STABLE, 1, seq=2),
        settings=UNCLEAN,
    ),
    "a power loss took it": excused(LED, *FORGOTTEN, settings=POWER_LOSS),
    "lines of a broker are missing": unknown(LED, UNHEARD, *FORGOTTEN, text="missing lines"),
    "members say what they own, and no coordinator tells": unknown(LED, owned(), text="no coordinator's log"),
    "there are no groups": sound(),
    "nothing is there": unknown(*FORGOTTEN, text="leader_epochs"),
}

test_generations_only_grow = table_of("I34", CASES)
