from collections.abc import Sequence

from harness.store.history import Sign
from tests.analysis.fact_rows import Row
from tests.analysis.group_rows import reported, stored
from tests.analysis.protocol_rows import S, sign
from tests.checks.answers import Case, fails, noted, passes, table_of
from tests.checks.signs_of_life import cases

UNREAD = sign(Sign.READ, "g has not read orders-1", process="g", topic="orders", partition=1)
"""At 70 s."""
HAD = stored("m2/i2", 0, 1, generation=3, seq=1)


def generation_4(
    second: str = "m2/i2",
    *partitions: int,
    first: str = "m1/i1",
    seq: int = 5,
    epoch: int = 3,
    reason: str = "stored",
    rebalance_s: int | None = None,
) -> list[Row]:
    """Partition 1 goes from the second member, which keeps 0, to the first one, which is to get it in generation 5."""
    return [
        row
        for member, has in ((first, ()), (second, partitions or (0,)))
        for row in stored(member, *has, generation=4, seq=seq, epoch=epoch, reason=reason, rebalance_s=rebalance_s)
    ]


def came_back(second: str = "m9/i2", *, seq: int = 9, epoch: int = 3, rebalance_s: int | None = None) -> list[Row]:
    return generation_4(second, seq=seq, epoch=epoch, reason="replaced", rebalance_s=rebalance_s)


def loaded(second: str = "m2/i2", *, epoch: int = 4) -> list[Row]:
    return generation_4(second, seq=2, epoch=epoch, reason="loaded")


def hole(*rows: Sequence[Row], text: str = "but generation 4 gives it to no member: i2 was to give it back") -> Case:
    shown = '"fact":"group_generations","group":"g","generation":4,"instance":"i2","members":["m2","m9"]'
    return noted(UNREAD, *(each for part in rows for each in part), text=text, shown=shown)


def violated(*rows: Sequence[Row]) -> Case:
    return fails(UNREAD, *(each for part in rows for each in part), facts=["liveness"])


CASES = {
    **cases((Sign.PRODUCE, Sign.FETCH, Sign.READ, Sign.COMMIT, Sign.WORK), other=Sign.IN_SYNC),
    "an instance that is to give a partition back comes again before": hole(HAD, generation_4(), came_back()),
    "it comes again to the next coordinator": hole(HAD, generation_4(), loaded(), came_back(epoch=4)),
    "a rebalance that it began went with a coordinator": hole(
        HAD, generation_4(rebalance_s=6), loaded(), came_back(epoch=4)
    ),
    "the next coordinator reads that it has come again": hole(HAD, generation_4(), loaded("m9/i2")),
    "it comes again at the instant of the look": hole(HAD, generation_4(), came_back(seq=70)),
    "it comes again after an earlier look": hole(
        HAD,
        generation_4(),
        came_back(seq=65),
        [sign(Sign.READ, process="g", topic="orders", partition=0, time_ns=60 * S)],
    ),
    "a rebalance begins after the look": hole(HAD, generation_4(), came_back(rebalance_s=71)),
    "a member gets the partition after the look": hole(
        HAD, generation_4(), came_back(), stored("m1/i1", 1, generation=5, seq=71)
    ),
    "the other member is dynamic": hole(HAD, generation_4(first="m1"), came_back()),
    "there is a hole, and every sign": passes(sign(Sign.READ), *HAD, *generation_4(), *came_back()),
    "there is a hole, and another member does not read": fails(
        sign(Sign.READ, "c0 has not read orders-1", process="c0", topic="orders", partition=1),
        *HAD,
        *generation_4(),
        *came_back(),
    ),
    "there is a hole, and the partition takes no record either": fails(
        UNREAD,
        sign(Sign.PRODUCE, "not written", topic="orders", partition=1),
        *HAD,
        *generation_4(),
        *came_back(),
        severities=["note", "violation"],
    ),
    "the member to give it back is dynamic": violated(
        stored("m2", 0, 1, generation=3, seq=1), generation_4("m2"), came_back("m9")
    ),
    "another instance came again": violated(HAD, generation_4(), generation_4(first="m9/i1", seq=9, reason="replaced")),
    "it came again in the generation before": violated(
        HAD, stored("m9/i2", 0, 1, generation=3, seq=2, reason="replaced"), generation_4("m9/i2")
    ),
    "the next coordinator loaded it, and no member rejoined": violated(HAD, generation_4(), loaded()),
    "no member rejoined": violated(HAD, generation_4()),
    "it came again after the look": violated(HAD, generation_4(), came_back(seq=71)),
    "a member has the partition": violated(HAD, generation_4("m2/i2", 0, 1), came_back()),
    "a member has it after rejoining": violated(
        HAD, generation_4(), generation_4("m9/i2", 0, 1, seq=9, reason="replaced")
    ),
    "no member ever had it": violated(stored("m2/i2", 0, generation=3, seq=1), generation_4(), came_back()),
    "a rebalance has begun since, and does not end": violated(HAD, generation_4(), came_back(rebalance_s=70)),
    "the next generation gives it to no member either": violated(
        HAD,
        generation_4(),
        came_back(),
        stored("m9/i2", 0, generation=5, seq=12),
    ),
    "the next coordinator has read an older generation": violated(
        HAD, generation_4(), came_back(), stored("m2/i2", 0, generation=3, seq=0, epoch=4, reason="loaded")
    ),
    "the stored assignment is unknown": violated(HAD, loaded(), came_back(epoch=4)),
    "only by its own word had it the partition": violated(
        [reported("m2/i2", 1, generation=3)], generation_4(), came_back()
    ),
    "only its members tell": violated(
        [reported("m2/i2", 1, generation=3), reported("m2/i2", generation=4), reported("m9/i2", generation=4)]
    ),
}

test_what_is_served_again_in_peace = table_of("I32", CASES)
