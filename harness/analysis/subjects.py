"""What must checks have seen, piece by piece? Where a piece was not seen, nothing found there is no answer.

What follows from the facts that a check needs holds for every check. Where clients had records acknowledged in a
partition, each needed fact has rows of that partition (or topic, or of the brokers that hold it), and readers reached
each of these records. A fact without any rows is another matter: the check answers UNKNOWN for want of it.
"""

from collections.abc import Sequence
from functools import cache, partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.allowances import LOSSES, WEAK_ACKS
from harness.analysis.check_helpers.findings import severity, with_unclean_election
from harness.analysis.check_helpers.log_starts import undecided
from harness.analysis.check_helpers.records import passed_by_one, reading_spans, stays_readable, unread
from harness.analysis.frames import GROUP_KEY, OFFSET_KEY, PARTITION_KEY, in_order, made_once
from harness.analysis.sources.lineage import LINEAGE
from harness.analysis.tables.schemas import TABLES
from harness.contracts.checks import Check, Settings, Severity, Subject, subjects
from harness.store.history import COMMITTED, READ_COMMITTED, OpType, Sign
from harness.values import OFFSETS_TOPIC, PROBE_PROCESS

_OF_CLIENTS = ("sends", "polls", "committed_offsets", "poll_steps", "send_reversals", "offset_reads")
"""Facts that say themselves which records and commits there were."""
_TOPIC_KEY = ("run_id", "topic")
_BROKER_KEY = ("run_id", "broker")


def subjects_of(check: Check) -> tuple[Subject, ...]:
    """Return all that a check must have seen: what it says, and what follows from the facts that it needs."""
    derived = [RECORDS_READ] if "polls" in check.needs else []
    derived += [_present(fact) for fact in check.needs if _follows(fact)]
    if any("state_changes" in LINEAGE[fact] for fact in check.needs):
        derived.append(BROKERS_TELL)
    return tuple(dict.fromkeys((*subjects(check), *derived)))


def _follows(fact: str) -> bool:
    """Return whether a fact has rows of each partition, topic or broker in which records were acknowledged."""
    return fact not in (*_OF_CLIENTS, "beliefs", "elections", "liveness", "steps") and bool(_place_of(fact))


def _place_of(fact: str) -> tuple[str, ...]:
    columns = {column.name for column in TABLES[fact].columns}
    keys = (PARTITION_KEY, _TOPIC_KEY) if fact == "controller_epochs" else (PARTITION_KEY, _TOPIC_KEY, _BROKER_KEY)
    return next((key for key in keys if columns.issuperset(key)), ())


def is_acknowledged_send() -> Column:
    """Return whether a row of `sends` was acknowledged, with its offset or without."""
    return (F.col("outcome") == OpType.OK.value) & (F.col("acks") != 0)


@made_once
def _written(sends: DataFrame, topics: DataFrame) -> DataFrame:
    """One row a partition of which records were acknowledged: how many; topics that were deleted have none."""
    gone = topics.where(~F.col("present")).select(*_TOPIC_KEY)
    counted = sends.where(is_acknowledged_send()).groupBy(*PARTITION_KEY).agg(F.count("*").alias("number"))
    return counted.join(gone, on=list(_TOPIC_KEY), how="left_anti")


def _not_emptied(partitions: DataFrame, replicas: DataFrame) -> DataFrame:
    """Leave out partitions whose replicas all say that retention or clients have deleted every record."""
    left = F.max(F.col("log_end_offset") - F.col("log_start_offset"))
    emptied = replicas.groupBy(*PARTITION_KEY).agg(left.alias("left")).where(F.col("left") == 0)
    had = replicas.where(F.col("log_end_offset") > 0).select(*PARTITION_KEY).distinct()
    gone = emptied.join(had, on=list(PARTITION_KEY), how="left_semi").select(*PARTITION_KEY)
    return partitions.join(gone, on=list(PARTITION_KEY), how="left_anti")


def _pieces(rows: DataFrame, place: Column, number: Column, unseen: Column) -> DataFrame:
    return rows.select(
        "run_id",
        F.coalesce(place, F.lit("?")).alias("place"),
        number.cast("bigint").alias("number"),
        unseen.cast("bigint").alias("unseen"),
    )


def _partition() -> Column:
    return F.concat_ws("-", "topic", "partition")


def each_in(
    pieces: DataFrame, seen: DataFrame, key: Sequence[str], place: Column, *, always: bool = False
) -> DataFrame:
    """Return pieces that are rows, each unseen where no row of `seen` has its key.

    Args:
        pieces: One row a piece.
        seen: Rows that have the key too.
        key: Columns, the first of them `run_id`.
        place: What a piece is called.
        always: Whether a run without any row in `seen` has unseen pieces too.
    """
    known = seen.select(*key).distinct().withColumn("known", F.lit(True))
    rows = pieces.select(*key).distinct()
    if not always:
        rows = rows.join(seen.select("run_id").distinct(), on="run_id", how="left_semi")
    return _pieces(rows.join(known, on=list(key), how="left"), place, F.lit(1), F.col("known").isNull().cast("int"))


@cache
def _present(fact: str) -> Subject:
    """Wherever records were acknowledged, the fact has rows."""
    key = _place_of(fact)
    if key == _BROKER_KEY:
        return Subject(
            facts=("partition_states", fact),
            pieces=lambda _, states, rows: each_in(_assigned(states), rows, key, _broker()),
            what="brokers with replicas",
            unseen=_absent(fact),
        )
    if fact == "consumer_fetches":
        return Subject(
            facts=("polls", fact),
            pieces=lambda _, polls, rows: each_in(polls, rows, key, _partition()),
            what="partitions that were read",
            unseen=_absent(fact),
        )
    if fact == "replica_records":
        return Subject(
            facts=("sends", "topics", "replicas", fact),
            pieces=lambda _, sends, topics, replicas, rows: each_in(
                _not_emptied(_written(sends, topics), replicas), rows, key, _partition()
            ),
            what="partitions with acknowledged records",
            unseen=_absent(fact),
        )
    named = _partition if key == PARTITION_KEY else partial(F.col, "topic")
    return Subject(
        facts=("sends", "topics", fact),
        pieces=lambda _, sends, topics, rows: each_in(_written(sends, topics), rows, key, named()),
        what=f"{'partitions' if key == PARTITION_KEY else 'topics'} with acknowledged records",
        unseen=_absent(fact),
    )


def _absent(fact: str) -> str:
    return f"have no rows in {fact}"


def _broker() -> Column:
    return F.concat(F.lit("broker "), F.col("broker"))


@made_once
def _assigned(partition_states: DataFrame) -> DataFrame:
    """One row a broker that a partition was assigned to; of an existing cluster's offsets topic no log is kept."""
    own = partition_states.where(F.col("topic") != OFFSETS_TOPIC)
    return own.select("run_id", F.explode("assignment").alias("broker")).distinct()


def _told(_: Settings, states: DataFrame, topics: DataFrame, registrations: DataFrame, claims: DataFrame) -> DataFrame:
    """The brokers with replicas, but for those with a log that had them only of topics that were deleted.

    Such a broker may never have heard of them.
    """
    registered = registrations.where(F.col("source") == "zookeeper").select(*_BROKER_KEY).distinct()
    live = _assigned(states).join(registered, on=list(_BROKER_KEY), how="left_semi")
    gone = topics.where(~F.col("present")).select(*_TOPIC_KEY)
    hold = _assigned(states.join(gone, on=list(_TOPIC_KEY), how="left_anti"))
    idle = registrations.where(F.col("source") == "broker").join(hold, on=list(_BROKER_KEY), how="left_anti")
    return each_in(live.join(idle, on=list(_BROKER_KEY), how="left_anti"), claims, _BROKER_KEY, _broker())


BROKERS_TELL = Subject(
    facts=("partition_states", "topics", "registrations", "leadership_claims"),
    pieces=_told,
    what="brokers with replicas",
    unseen="have no lines in the brokers' logs",
)
"""Every broker that registered and has replicas has a log."""


def _reached(
    settings: Settings,
    sends: DataFrame,
    polls: DataFrame,
    end_offsets: DataFrame,
    topics: DataFrame,
    leader_epochs: DataFrame,
    superseded: DataFrame,
) -> DataFrame:
    """The acknowledged records of each partition; unseen are those that no reader got, and that lie where none was.

    That is past the last offset that was read, or before the first, where readers did not begin at the start. Where
    readers came to the partition's end, as it was asked for last, records past it are seen to be gone: what no loss
    that the settings allow has taken remains unseen, for `stale-read-after-ack` judges the end.
    """
    ends = end_offsets.groupBy(*PARTITION_KEY).agg(F.max_by("offset", "complete_ns").alias("end"))
    offset, key = F.col("offset"), list(PARTITION_KEY)
    behind = offset.isNull() | (offset > F.coalesce("last", F.lit(-1)))
    before = ~F.lit(settings.read_from_start) & ~passed_by_one(offset)
    written = sends.where(is_acknowledged_send() & stays_readable())
    unread = (
        reading_spans(polls)
        .hint("shuffle_hash")
        .join(written, on=key, how="right")  # Sail keeps the left side of a join in memory
        .where(behind | before)
        .join(polls, on=[*PARTITION_KEY, "value"], how="left_anti")
        .join(superseded, on=[*PARTITION_KEY, "offset"], how="left_anti")
        .join(ends, on=key, how="left")
    )
    level = severity(
        (WEAK_ACKS, *LOSSES),
        settings,
        acks=F.col("acks"),
        unclean=F.coalesce("unclean", F.lit(False)),
    )
    at_the_end = F.coalesce(
        (offset >= F.col("end")) & (F.coalesce("last", F.lit(-1)) + 1 >= F.col("end")), F.lit(False)
    )
    gone = at_the_end & (level != Severity.VIOLATION.value)
    unseen = (
        with_unclean_election(unread, leader_epochs, settings)
        .where(~gone)
        .groupBy(*PARTITION_KEY)
        .agg(F.count("*").alias("unseen"))
    )
    rows = _written(sends, topics).join(unseen, on=key, how="left")
    return _pieces(rows, _partition(), F.col("number"), F.coalesce("unseen", F.lit(0)))


RECORDS_READ = Subject(
    facts=("sends", "polls", "end_offsets", "topics", "leader_epochs", "superseded"),
    pieces=_reached,
    what="acknowledged records",
    unseen="were reached by no reader",
)
"""Readers reached every acknowledged record, or passed it."""


def _reached_committed(
    settings: Settings, sends: DataFrame, polls: DataFrame, end_offsets: DataFrame, *others: DataFrame
) -> DataFrame:
    """The records of committed transactions, in runs with a reader that reads committed ones alone (`_reached`)."""
    committed = sends.where(F.col("transaction_outcome") == COMMITTED)
    readers = polls.where(F.col("isolation") == READ_COMMITTED)
    judged = readers.select("run_id").distinct().join(committed, on="run_id", how="inner")
    return _reached(settings, judged, readers, end_offsets, *others)


TRANSACTIONS_READ = Subject(
    facts=("sends", "polls", "end_offsets", "topics", "leader_epochs", "superseded"),
    pieces=_reached_committed,
    what="records of committed transactions",
    unseen="were reached by no reader with read_committed",
)
"""Readers with read_committed came to every record of a committed transaction, or past it."""


def _transactions_beside(_: Settings, client_transactions: DataFrame, polls: DataFrame) -> DataFrame:
    readers = polls.where(F.col("isolation") == READ_COMMITTED).select("run_id").distinct()
    rows = client_transactions.join(readers, on="run_id", how="left_semi")
    return counted(rows)


TRANSACTIONS_BESIDE_READERS = Subject(
    facts=("client_transactions", "polls"),
    pieces=_transactions_beside,
    what="transactions of clients beside readers with read_committed",
)
"""The history has transactions, and a reader with read_committed."""


def _to_the_end(
    _: Settings, sends: DataFrame, polls: DataFrame, end_offsets: DataFrame, topics: DataFrame, replicas: DataFrame
) -> DataFrame:
    """The offsets of each partition before the end that was asked for last; unseen are those past the last one read.

    Of a partition that was dumped, the dump shows what lies there. Otherwise records of transactions may lie there that
    were acknowledged and not committed, and a marker of each transaction.
    """
    key = list(PARTITION_KEY)
    gone = topics.where(~F.col("present")).select(*_TOPIC_KEY)
    ends = end_offsets.groupBy(*key).agg(F.max_by("offset", "complete_ns").alias("end"))
    of_clients = sends.select(*key).unionByName(polls.select(*key)).distinct()
    rows = (
        ends.join(of_clients, on=key, how="left_semi")
        .join(replicas.select(*key).distinct(), on=key, how="left_anti")
        .join(gone, on=list(_TOPIC_KEY), how="left_anti")
        .join(reading_spans(polls).select(*key, "last"), on=key, how="left")
    )
    known = _known_behind(sends, rows.select(*key, "end", F.coalesce("last", F.lit(-1)).alias("last")))
    behind = F.col("end") - 1 - F.coalesce("last", F.lit(-1)) - F.coalesce("known", F.lit(0))
    return _pieces(rows.join(known, on=key, how="left"), _partition(), F.col("end"), F.greatest(behind, F.lit(0)))


def _known_behind(sends: DataFrame, ends: DataFrame) -> DataFrame:
    """How many offsets between `last` and `end` are `known`: records of transactions there, and markers at most.

    A marker comes after the records of its transaction and before those of the next one with the same transactional id.
    """
    key, of_id = list(PARTITION_KEY), [*PARTITION_KEY, "transactional_id"]
    offset, last = F.col("offset"), F.col("last")
    began_before, goes_on = F.col("first") <= last, F.col("final") > last
    return (
        sends.where(F.col("transaction").isNotNull() & offset.isNotNull())
        .join(ends, on=key, how="inner")
        .groupBy(*of_id, "process", "transaction", "last")
        .agg(
            F.min("offset").alias("first"),
            F.max("offset").alias("final"),
            F.count_if((offset > last) & (offset < F.col("end"))).alias("records"),
        )
        .groupBy(*of_id)
        .agg(
            F.sum("records").alias("records"),
            F.count_if(goes_on).alias("later"),
            (F.bool_or(~goes_on) & ~F.bool_or(began_before & goes_on)).cast("int").alias("earlier"),
        )
        .groupBy(*key)
        .agg(F.sum(F.col("records") + F.col("later") + F.col("earlier")).alias("known"))
    )


ENDS_READ = Subject(
    facts=("sends", "polls", "end_offsets", "topics", "replicas"),
    pieces=_to_the_end,
    what="offsets before the ends of partitions",
    unseen="lie past the last record that was read, in logs without a dump",
)
"""Readers reached the end of each partition whose end was requested; records past them are unknown."""


def _kept(
    settings: Settings,
    sends: DataFrame,
    polls: DataFrame,
    topics: DataFrame,
    replicas: DataFrame,
    broker_logs: DataFrame,
) -> DataFrame:
    written, key = _written(sends, topics), list(PARTITION_KEY)
    absent = unread(sends, polls).groupBy(*key).agg(F.count("*").alias("unseen"))
    left_out = undecided(written.select(*key), replicas, broker_logs, settings)
    rows = written.join(left_out, on=key, how="left_semi").join(absent, on=key, how="left")
    return _pieces(rows, _partition(), F.col("number"), F.coalesce("unseen", F.lit(0)))


RECORDS_KEPT = Subject(
    facts=("sends", "polls", "topics", "replicas", "broker_logs"),
    pieces=_kept,
    what="acknowledged records",
    unseen="were not read and may have been deleted or compacted",
)
"""No record is absent that retention, a client or a cleaner may have removed where no broker's evidence decides."""


def _steps_kept(settings: Settings, poll_steps: DataFrame, replicas: DataFrame, broker_logs: DataFrame) -> DataFrame:
    key = list(PARTITION_KEY)
    ahead = F.count_if(F.col("offset") > F.col("previous_offset") + 1)
    counted = poll_steps.groupBy(*key).agg(F.count("*").alias("number"), ahead.alias("unseen"))
    rows = counted.join(undecided(counted.select(*key), replicas, broker_logs, settings), on=key, how="left_semi")
    return _pieces(rows, _partition(), F.col("number"), F.col("unseen"))


STEPS_KEPT = Subject(
    facts=("poll_steps", "replicas", "broker_logs"),
    pieces=_steps_kept,
    what="steps of readers",
    unseen="pass offsets whose records may have been deleted or compacted",
)
"""No reader passes offsets whose records may have been removed where no broker's evidence decides."""


def _placed(_: Settings, sends: DataFrame) -> DataFrame:
    rows = sends.where(is_acknowledged_send()).groupBy(*PARTITION_KEY)
    counted = rows.agg(F.count("*").alias("number"), F.count_if(F.col("offset").isNull()).alias("unseen"))
    return _pieces(counted, _partition(), F.col("number"), F.col("unseen"))


RECORDS_PLACED = Subject(
    facts=("sends",), pieces=_placed, what="acknowledged records", unseen="have no recorded offset"
)
"""Every acknowledged record has an offset."""


def _elections(_: Settings, leader_epochs: DataFrame, elections: DataFrame) -> DataFrame:
    before = F.lag("leader").over(in_order(*PARTITION_KEY, by=("zxid", "leader_epoch")))
    changed = (
        leader_epochs.where(F.col("zxid").isNotNull())
        .withColumn("before", before)
        .where((F.col("leader_epoch") > 0) & (F.col("leader") >= 0) & ~F.col("leader").eqNullSafe(F.col("before")))
    )
    return each_in(changed, elections, PARTITION_KEY, _partition())


ELECTIONS_TOLD = Subject(
    facts=("leader_epochs", "elections"),
    pieces=_elections,
    what="partitions whose leader changed",
    unseen=_absent("elections"),
)
"""Wherever the leader changed, a controller logged an election. A new epoch alone, as for a smaller ISR, is none."""


def _read_back(_: Settings, committed_offsets: DataFrame) -> DataFrame:
    by_clients = committed_offsets.where((F.col("source") == "client") & (F.col("outcome") == OpType.OK.value))
    commits, fetches = (by_clients.where(F.col("kind") == kind) for kind in ("commit", "fetch"))
    commits = commits.where(F.col("process") != PROBE_PROCESS)
    return each_in(commits, fetches, OFFSET_KEY, _group_partition(), always=True)


def _group_partition() -> Column:
    return F.concat(F.col("group"), F.lit(" of "), _partition())


COMMITS_READ_BACK = Subject(
    facts=("committed_offsets",),
    pieces=_read_back,
    what="partitions with acknowledged commits of a group",
    unseen="had no committed offset read back",
)
"""What a group committed was read back, of every partition."""


def _in_log(_: Settings, committed_offsets: DataFrame) -> DataFrame:
    acknowledged = (F.col("source") == "client") & (F.col("kind") == "commit") & (F.col("outcome") == OpType.OK.value)
    logged = committed_offsets.where(F.col("source") == "log")
    return each_in(committed_offsets.where(acknowledged), logged, ("run_id", "group"), F.col("group"), always=True)


COMMITS_LOGGED = Subject(
    facts=("committed_offsets",),
    pieces=_in_log,
    what="groups with acknowledged commits",
    evidence="replicas",
    unseen="are in no dump of the offsets topic",
)
"""The log of the offsets topic has every group that committed."""


@cache
def groups_in(fact: str) -> Subject:
    """Return the subject that a fact has coordinators' rows of every group that had members."""

    def pieces(_: Settings, ownerships: DataFrame, told: DataFrame) -> DataFrame:
        seen = told.where(F.col("source") == "coordinator") if "source" in told.columns else told
        groups = ownerships.select(*GROUP_KEY).unionByName(told.select(*GROUP_KEY))
        return each_in(groups, seen, GROUP_KEY, F.col("group"))

    return Subject(facts=("ownerships", fact), pieces=pieces, what="groups", unseen=_absent(fact))


def _commits_taken(_: Settings, committed_offsets: DataFrame, group_commits: DataFrame) -> DataFrame:
    acknowledged = (F.col("source") == "client") & (F.col("kind") == "commit") & (F.col("outcome") == OpType.OK.value)
    commits = committed_offsets.where(acknowledged).select(*GROUP_KEY).unionByName(group_commits.select(*GROUP_KEY))
    return each_in(commits, group_commits, GROUP_KEY, F.col("group"))


COMMITS_TAKEN = Subject(
    facts=("committed_offsets", "group_commits"),
    pieces=_commits_taken,
    what="groups with acknowledged commits",
    unseen=_absent("group_commits"),
)
"""Coordinators' logs have every group that committed."""


def _loaded(_: Settings, group_states: DataFrame, group_loads: DataFrame) -> DataFrame:
    key = ("run_id", "partition")
    partitions = group_states.select("run_id", F.col("offsets_partition").alias("partition"))
    place = F.concat(F.lit("__consumer_offsets-"), F.col("partition"))
    return each_in(partitions, group_loads, key, place, always=True)


GROUPS_LOADED = Subject(
    facts=("group_states", "group_loads"),
    pieces=_loaded,
    what="partitions of the offsets topic with groups",
    unseen=_absent("group_loads"),
)
"""A coordinator logged that it loaded every partition in which it has groups."""


def _members_read(_: Settings, generations: DataFrame, ownerships: DataFrame, polls: DataFrame) -> DataFrame:
    assigned = generations.where((F.col("source") == "coordinator") & F.col("partition").isNotNull())
    members = ownerships.select(*GROUP_KEY, "process").distinct()
    read = polls.select("run_id", "process").distinct().join(members, on=["run_id", "process"], how="inner")
    groups = assigned.select(*GROUP_KEY).unionByName(ownerships.select(*GROUP_KEY))
    return each_in(groups, read, GROUP_KEY, F.col("group"), always=True)


GROUPS_READ = Subject(
    facts=("group_generations", "ownerships", "polls"),
    pieces=_members_read,
    what="groups",
    unseen="have members that read nothing",
)
"""Some member of every group read something."""


def _both_sides(_: Settings, registrations: DataFrame) -> DataFrame:
    sides = registrations.groupBy(*_BROKER_KEY, "czxid").agg(F.size(F.collect_set("source")).alias("sides"))
    both = sides.where(F.col("sides") > 1)
    return each_in(registrations, both, _BROKER_KEY, _broker())


REGISTRATIONS_MATCHED = Subject(
    facts=("registrations",),
    pieces=_both_sides,
    what="brokers",
    unseen="have registrations that only ZooKeeper or only the broker records",
)
"""Of every broker a registration is known from both sides."""


@cache
def signs_of(*signs: Sign) -> Subject:
    """Return that all these signs of life were looked for in every partition in which records were acknowledged.

    Where one is missing, others may not be looked for: no record is fetched that was not acknowledged before.
    """

    def pieces(_: Settings, sends: DataFrame, topics: DataFrame, liveness: DataFrame) -> DataFrame:
        written = _written(sends, topics).join(liveness.select("run_id").distinct(), on="run_id", how="left_semi")
        looked = (
            liveness.where(F.col("sign").isin([sign.value for sign in signs]))
            .groupBy(*PARTITION_KEY)
            .agg(F.count_distinct("sign").alias("signs"), F.every("shown").alias("shown"))
            .where((F.col("signs") == len(signs)) | ~F.col("shown"))
        )
        return each_in(written, looked, PARTITION_KEY, _partition(), always=True)

    return Subject(
        facts=("sends", "topics", "liveness"),
        pieces=pieces,
        what="partitions with acknowledged records",
        unseen=f"were not probed for all of {', '.join(signs)}",
    )


def counted(rows: DataFrame) -> DataFrame:
    """Return how many rows there are of each run, as pieces of which none is unseen."""
    return _pieces(rows.groupBy("run_id").agg(F.count("*").alias("number")), F.lit(""), F.col("number"), F.lit(0))


@cache
def rows_of(fact: str, what: str, condition: str = "true") -> Subject:
    """Return the rows of a fact for which a condition holds, which are seen by their nature."""

    def pieces(_: Settings, rows: DataFrame) -> DataFrame:
        return counted(rows.where(condition))

    return Subject(facts=(fact,), pieces=pieces, what=what)
