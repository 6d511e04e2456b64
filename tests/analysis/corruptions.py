"""What can be wrong with a run, planted one at a time into one in which nothing is, and the checks that must find it.

A corruption changes lines as the bug that it stands for would have written them. It returns whether the run had what it
takes; `CORRUPTIONS` says which checks find it, and no other may.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tests.analysis import corrupted_brokers as brokers
from tests.analysis import corrupted_client_transactions as client_transactions
from tests.analysis import corrupted_clients as clients
from tests.analysis import corrupted_groups as groups
from tests.analysis import corrupted_replicas as replicas
from tests.analysis import corrupted_transactions as transactions
from tests.analysis.model_evidence import Evidence


@dataclass(frozen=True)
class Corruption:
    plant: Callable[[Evidence], bool]
    finders: set[str]
    unknown: frozenset[str] = frozenset()
    """Checks that cannot tell any more: the evidence is damaged, or does not show what they are about."""
    also: frozenset[str] = frozenset()
    """Checks that find it in some histories."""


MODEL = "step-by-step"
"""Walks what other checks judge too: it may find any corruption of what brokers and ZooKeeper wrote."""
_OF_TRANSACTIONS_READ = frozenset(
    {
        "aborted-transaction-read",
        "lost-committed-write",
        "precommitted-read",
        "torn-transaction",
        "transaction-cycles",
    }
)
_OF_VALUES = _OF_TRANSACTIONS_READ | {"ends-own-transaction", "exactly-once"}
"""Checks of transactions that follow records by their values."""
_OF_CLIENTS = _OF_VALUES | frozenset(
    {
        "I10",
        "I16",
        "I20",
        "I29",
        "I33",
        "I36",
        "I38",
        "aborted-read",
        "duplicate",
        "inconsistent-offsets",
        "int-nonmonotonic-poll",
        "int-nonmonotonic-send",
        "int-poll-skip",
        "lost-write",
        "nonmonotonic-poll",
        "nonmonotonic-send",
        "offset-regression",
        "phantom",
        "poll-skip",
        "stale-read-after-ack",
        "unseen",
        "promised-answers",
        "reads-from-offset",
        "recorded-answers",
    }
)
_OF_READERS = _OF_TRANSACTIONS_READ | frozenset(
    {
        "aborted-read",
        "duplicate",
        "inconsistent-offsets",
        "int-nonmonotonic-poll",
        "int-poll-skip",
        "lost-write",
        "nonmonotonic-poll",
        "phantom",
        "poll-skip",
    }
)
_OF_TRANSACTIONS = frozenset(
    {
        "aborted-index",
        "ends-own-transaction",
        "fenced-producers",
        "last-stable-offset",
        "marker-epochs",
        "markers-complete",
        "markers-decided",
        "markers-kept",
        "one-outcome",
        "producer-snapshots",
        "transaction-epochs",
        "transaction-states",
        "transactional-data",
        "transactional-offsets",
    }
)
"""Checks that rest on dumps and on the brokers' logs."""
_OF_BROKERS = frozenset(
    f"I{number}"
    for number in (
        *(1, 2, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 18, 19, 20, 22, 24, 26, 27, 28, 29, 30),
        *range(33, 41),
    )
) | {
    *_OF_TRANSACTIONS,
    MODEL,
    "clean-stops",
    "configuration-in-force",
    "deletion-in-time",
    "follower-watermarks",
    "leader-in-time",
    "live-brokers",
    "log-starts",
    "quorum-leader-resigns",
    "recovery-points",
    "retention",
    "shutting-down",
    "unexpected-errors",
}

CORRUPTIONS = {
    "a high watermark moves from where it was not": Corruption(brokers.move_watermark, {MODEL}),
    # what clients see
    "an acknowledged record is in no log and was not read": Corruption(clients.lose, {"I10", "I21", "lost-write"}),
    "the last acknowledged record is in no log and was not read": Corruption(
        clients.lose_last, {"I10", "unseen"}, _OF_READERS
    ),
    "a reader gets a value that was never sent": Corruption(clients.read_other, {"inconsistent-offsets", "phantom"}),
    "a value is read at two offsets": Corruption(clients.read_twice, {"duplicate"}),
    "a value is read whose send failed": Corruption(clients.fail_send, {"aborted-read"}),
    "a value is read that no process sent": Corruption(clients.forget_send, {"phantom"}),
    "a broker answers a script otherwise than recorded": Corruption(clients.answer_otherwise, {"recorded-answers"}),
    "a broker answers a step otherwise than promised": Corruption(clients.break_promise, {"promised-answers"}),
    "a poll turns two records round": Corruption(clients.turn_round, {"int-nonmonotonic-poll", "int-poll-skip"}),
    "a poll leaves a record out": Corruption(clients.leave_out, {"int-poll-skip"}),
    "a reader misses a poll": Corruption(clients.miss_poll, {"poll-skip"}),
    "a reader gets a record again": Corruption(clients.read_again, {"nonmonotonic-poll"}),
    "two records of a batch land the other way round": Corruption(
        clients.swap_in_batch, {"I10", "inconsistent-offsets", "int-nonmonotonic-send"}
    ),
    "a record lands before one that was acknowledged first": Corruption(
        clients.swap_batches, {"I10", "inconsistent-offsets", "nonmonotonic-send"}
    ),
    "a committed offset is read back lower": Corruption(clients.lower_read_back, {"offset-regression"}),
    "a group commits what was never written": Corruption(clients.commit_far, {"I16"}),
    "a group's last commit is in no log": Corruption(clients.lose_commit, {"I16"}),
    "a partition ends before what was acknowledged": Corruption(clients.lower_end, {"stale-read-after-ack"}),
    "a request never has an end": Corruption(clients.never_end, {"I20"}),
    # what is in the logs
    "one replica lacks an acknowledged record": Corruption(replicas.lack, {"I9", "I10", "I21"}),
    "one replica lacks the last acknowledged record": Corruption(replicas.lack_last, {"I6", "I9", "I10"}),
    "one replica holds another value": Corruption(replicas.other_value, {"I9", "I10"}),
    "one replica holds other bytes": Corruption(replicas.other_bytes, {"I9"}),
    "an epoch cache is no staircase": Corruption(replicas.flat_cache, {"I12", "I27"}),
    "a record has an epoch in which it was not written": Corruption(replicas.foreign_epoch, {"I12", "I27"}),
    "an epoch cache has forgotten an epoch": Corruption(replicas.forget_epoch, {"I27"}),
    "an epoch cache has an epoch without writes": Corruption(replicas.epoch_of_nobody, {"I27"}),
    "a batch is in the log with a number that it has not": Corruption(replicas.repeat_sequence, {"I21"}),
    # what ZooKeeper holds
    "the leader is not in its ISR": Corruption(brokers.leave_isr, {"I3"}),
    "the ISR names a broker without a replica": Corruption(brokers.stranger_in_isr, {"I3", "I6", "I8"}),
    "a leader is elected from outside the ISR": Corruption(brokers.elect_outsider, {"I4"}),
    "a leader is elected from outside where the configuration forbids it": Corruption(brokers.forbid_unclean, {"I4"}),
    "a topic asks for more in sync than acks=all had": Corruption(
        brokers.ask_for_more, {"I19", "I26", "configuration-in-force"}
    ),
    "a live replica stays out of the ISR": Corruption(brokers.stay_out, {"I20"}, also=frozenset({"I29"})),
    "a deleted topic leaves its logs": Corruption(brokers.delete_topic, {"I23", "I29"}),
    "a requested deletion never ends": Corruption(brokers.never_delete, {"deletion-in-time"}),
    "a broker never removes what it deleted": Corruption(brokers.keep_folder, {"I23"}),
    "the controller epoch does not grow": Corruption(brokers.same_controller_epoch, {"I2"}),
    "a broker claims producer ids that are taken": Corruption(brokers.claim_again, {"I25"}),
    # what brokers say
    "two brokers lead in one epoch": Corruption(brokers.second_leader, {"I1"}),
    "two brokers have one controller epoch": Corruption(brokers.second_controller, {"I2"}),
    "a state is written over another version": Corruption(brokers.blind_write, {"I5"}),
    "a high watermark passes the log end": Corruption(brokers.mark_too_far, {"I6", "I7", "I11"}),
    "a high watermark goes back": Corruption(brokers.mark_back, {"I11"}),
    "a leader waits for a replica that has nothing": Corruption(brokers.wait_for_stranger, {"I7"}),
    "a leader does not wait for a member of the ISR": Corruption(brokers.wait_for_fewer, {"I8"}),
    "a follower cuts what is committed": Corruption(brokers.cut_committed, {"I11", "I30"}),
    "a follower joins the ISR too early": Corruption(brokers.join_early, {"I13"}),
    "a broker obeys an old controller": Corruption(brokers.obey_old_controller, {"I14"}),
    "a broker obeys a request for its earlier life": Corruption(brokers.obey_for_earlier_life, {"I14"}),
    "a replica is stopped for an epoch that is over": Corruption(brokers.stop_late, {"I14"}),
    "a follower keeps a record too many": Corruption(brokers.cut_less, {"I15"}),
    "a broker takes the registration of another session": Corruption(brokers.other_session, {"I18"}),
    "acks=all is answered with one in sync": Corruption(brokers.acknowledge_alone, {"I19"}),
    "acks=all is answered before it is committed": Corruption(brokers.acknowledge_early, {"I19"}),
    "acks=all is written with one in sync": Corruption(brokers.append_alone, {"I26"}),
    "a leader goes on to lead when its disk has failed": Corruption(brokers.lead_on_without_disk, {"I40"}),
    "acks=all is refused when it is written, with enough in sync": Corruption(brokers.refuse_late, {"I26"}),
    "a retry of what is in the log is refused": Corruption(brokers.refuse_retry, {"I28"}),
    "a broker takes a live broker for dead": Corruption(brokers.forget_live_broker, {"I29"}),
    "a broker does not know a partition": Corruption(brokers.forget_partition, {"I29"}),
    "a leader says a wrong end of an epoch": Corruption(brokers.answer_wrongly, {"I30"}),
    "a leader answers a replica in another epoch": Corruption(brokers.answer_in_another_epoch, {"I30"}),
    "a follower acts without an answer": Corruption(brokers.act_unanswered, {"I30"}),
    "the controller chooses an absent broker": Corruption(brokers.choose_absent, {"I22", "live-brokers"}),
    "a controller takes a broker for alive that is not there": Corruption(brokers.take_for_alive, {"live-brokers"}),
    "a broker counts as shutting down that has not asked": Corruption(brokers.leave_out, {"shutting-down"}),
    "a controller leaves a partition without a leader": Corruption(brokers.elect_late, {"leader-in-time"}),
    "a follower does not hear of the high watermark": Corruption(brokers.keep_high_watermark, {"follower-watermarks"}),
    "a follower does not hear of deleted records": Corruption(brokers.keep_log_start, {"follower-watermarks"}),
    "a replaced leader of a quorum leads on": Corruption(brokers.lead_on_in_quorum, {"quorum-leader-resigns"}),
    "a broker trusts its logs after a crash": Corruption(brokers.trust_after_crash, {"clean-stops"}),
    "deleted records are there again after a clean stop": Corruption(brokers.start_earlier, {"log-starts"}),
    "a log starts later after a clean stop": Corruption(brokers.start_later, {"log-starts"}),
    "a log ends before its recovery point": Corruption(brokers.sync_less, {"recovery-points"}),
    "a segment is deleted before its time": Corruption(brokers.delete_early, {"retention"}),
    "a replica acts on what was never configured": Corruption(
        brokers.act_on_other_configuration, {"configuration-in-force"}
    ),
    "a consumer gets what is not committed": Corruption(brokers.serve_uncommitted, {"I24"}),
    "a consumer is served in another epoch": Corruption(brokers.serve_other_epoch, {"I24"}),
    "a broker raises an error that it does not foresee": Corruption(brokers.fail_unforeseen, {"unexpected-errors"}),
    # what the cluster shows in the end
    "a broker that runs never registers": Corruption(brokers.stay_away, {"I31"}),
    "a partition takes no record any more": Corruption(brokers.take_nothing, {"I32"}),
    # what becomes of groups
    "a partition is assigned to two members": Corruption(groups.assign_twice, {"I33"}, frozenset({"I38", "I39"})),
    "a group goes back to an older generation": Corruption(groups.go_back, {"I34"}, frozenset({"I39"})),
    "the next coordinator knows nothing of a group": Corruption(groups.forget_group, {"I34"}),
    "the next coordinator has forgotten a member": Corruption(groups.forget_member, {"I34"}, frozenset({"I38", "I39"})),
    "a commit of an older generation is taken": Corruption(groups.commit_late, {"I35"}, frozenset({"I36", "I39"})),
    "a commit is taken while assignments are awaited": Corruption(
        groups.commit_unassigned, {"I35"}, frozenset({"I36", "I39"})
    ),
    "a commit of a non-member is accepted": Corruption(groups.commit_as_nobody, {"I35"}, frozenset({"I36", "I39"})),
    "a member begins before what was committed": Corruption(
        groups.begin_low, {"I36"}, frozenset({"I35", "I38", "I39"})
    ),
    "a rebalance takes for ever": Corruption(groups.rebalance_for_long, {"I37"}, frozenset({"I39"})),
    "no member reads an assigned partition": Corruption(groups.read_nothing, {"I38"}, frozenset({"I39"})),
    "a member misses a poll of what it owns": Corruption(groups.skip_while_owned, {"poll-skip"}, frozenset({"I39"})),
    "a member gets a record of what it owns again": Corruption(
        groups.go_back_while_owned, {"nonmonotonic-poll"}, frozenset({"I39"})
    ),
    "a coordinator does not read its log to the end": Corruption(groups.load_less, {"I39"}),
    "a coordinator drops late what it has loaded since": Corruption(groups.unload_late, {"I39"}),
    # what becomes of transactions
    "a complete transaction has a partition still": Corruption(transactions.keep_partition, {"transaction-states"}),
    "the epoch of a transactional id leaps": Corruption(transactions.raise_epoch, {"transaction-epochs"}),
    "a marker is written before its decision": Corruption(
        transactions.mark_early, {"markers-decided"}, also=frozenset({"ends-own-transaction"})
    ),
    "a marker names another producer": Corruption(
        transactions.mark_for_stranger, {"markers-complete", "markers-decided", "producer-snapshots"}
    ),
    "a transaction is aborted in one partition alone": Corruption(
        transactions.tear,
        {"aborted-index", "markers-complete", "one-outcome"},
        also=frozenset({"ends-own-transaction"}),
    ),
    "a transaction writes to a partition that it does not name": Corruption(
        transactions.write_outside, {"markers-complete", "transactional-data"}
    ),
    "a marker is of an older coordinator": Corruption(transactions.mark_from_the_past, {"marker-epochs"}),
    "a fenced producer writes": Corruption(transactions.write_fenced, {"fenced-producers", "transactional-data"}),
    "an index lacks an aborted transaction": Corruption(transactions.lose_entry, {"aborted-index"}),
    "compaction removes a marker before its data": Corruption(transactions.clean_marker, {"markers-kept"}),
    "a snapshot has a producer otherwise than the log": Corruption(
        transactions.remember_otherwise, {"producer-snapshots"}
    ),
    "a last stable offset passes an open transaction": Corruption(
        transactions.move_stable_offset, {"last-stable-offset"}
    ),
    "a reader gets a record of an aborted transaction": Corruption(
        client_transactions.read_aborted, {"aborted-transaction-read"}
    ),
    "a record is read before its commit is asked for": Corruption(
        client_transactions.ask_late, {"ends-own-transaction", "precommitted-read"}
    ),
    "a reader gets a part of a transaction": Corruption(client_transactions.tear_read, {"torn-transaction"}),
    "a reader misses a record of a committed transaction": Corruption(
        client_transactions.miss_committed, {"lost-committed-write"}, also=frozenset({"poll-skip", "torn-transaction"})
    ),
    "two transactions are made of each other": Corruption(
        client_transactions.read_in_circle, {"transaction-cycles"}, also=frozenset({"exactly-once"})
    ),
    "a transaction commits that its client aborted": Corruption(
        client_transactions.end_otherwise, {"aborted-transaction-read", "ends-own-transaction"}
    ),
    "a pipeline makes two records of one": Corruption(client_transactions.make_twice, {"exactly-once"}),
    "a position of an aborted transaction counts": Corruption(
        client_transactions.count_aborted, {"transactional-offsets"}
    ),
    # what is wrong with the evidence itself
    "a line of a broker is missing": Corruption(brokers.lose_line, set(), _OF_BROKERS),
    "a line of a client cannot be read": Corruption(clients.tear_line, set(), _OF_CLIENTS),
    "a value is sent twice": Corruption(
        clients.send_twice,
        set(),
        frozenset(
            {"I10", "aborted-read", "duplicate", "inconsistent-offsets", "lost-write", "reads-from-offset", "unseen"}
        )
        | _OF_VALUES,
    ),
    "a replica's dump is missing": Corruption(
        replicas.lose_dump, set(), frozenset({"I6", "I9", "I10", "I16", "I21", "I27", "unseen"}) | _OF_TRANSACTIONS
    ),
    "a read from an offset on begins before it": Corruption(clients.read_before_offset, {"reads-from-offset"}),
}
