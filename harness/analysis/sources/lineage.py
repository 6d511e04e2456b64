"""Which evidence each fact is made of: what is lacking where a fact has no rows, and what bad lines make doubtful."""

import re
from collections.abc import Collection, Sequence

from harness.events import (
    KINDS,
    Append,
    BatchRefused,
    BecomeFollower,
    BecomeLeader,
    BrokerRegistered,
    BrokerStart,
    Compaction,
    ConfigurationInForce,
    ControllerElected,
    ControllerEvent,
    ControllerReady,
    ControllerResigned,
    ControlReceive,
    ControlSend,
    CoordinatorLoad,
    CoordinatorUnload,
    Election,
    Event,
    FetchResponse,
    GroupAssignment,
    GroupMemberChange,
    GroupStateChange,
    HighWatermark,
    IsrPropose,
    LastStableOffset,
    LeaveRequest,
    LogsClose,
    LogStart,
    OffsetCommit,
    OffsetForLeaderEpoch,
    OffsetRetired,
    ProduceResponse,
    ProducersExpired,
    Recovery,
    RegistrationsRead,
    SegmentDelete,
    TransactionalOffsetCommit,
    TransactionMarker,
    TransactionResponse,
    TransactionStateChange,
    Truncate,
    UnexpectedError,
    ZkWrite,
)
from harness.model.subjects import OF_BROKERS
from harness.store.history import OpKind

PLACES: dict[str, str] = {
    "operations": "operations",
    "replicas": "replicas",
    "zookeeper": "zookeeper",
    "state_changes": "brokers",
    "journal": "journal",
    "liveness": "liveness",
}
"""How the place of a file within the run folder begins, by what its lines are."""


Origin = dict[str, str]
"""Kinds of evidence of which each gives rows, and which of their lines do."""


def _operations(*kinds: str) -> Origin:
    return {"operations": f"kind {' and '.join(f'`{kind}`' for kind in kinds)}"}


def _state_changes(*kinds: str) -> Origin:
    return {"state_changes": " and ".join(f"`{kind}`" for kind in kinds)}


def _znodes(*paths: str) -> Origin:
    return {"zookeeper": " and ".join(f"`{path}`" for path in paths)}


_STATES = _znodes("/brokers/topics/…/state")

LINEAGE: dict[str, Origin] = {
    "sends": _operations("send"),
    "polls": _operations("poll"),
    "replicas": {"replicas": "type `replica`"},
    "replica_records": {"replicas": "type `record`"},
    "partition_states": _STATES,
    "leader_epochs": _STATES | _state_changes("become_leader", "append"),
    "leadership_claims": _state_changes("become_leader", "become_follower"),
    "appends": _state_changes("append"),
    "controller_epochs": _znodes("/controller_epoch", "/controller") | _state_changes("controller_elected"),
    "isr_changes": _STATES,
    "high_watermarks": _state_changes("hw"),
    "truncations": _state_changes("truncate"),
    "committed_offsets": _operations("commit", "fetch_committed") | {"replicas": "records of `__consumer_offsets`"},
    "fault_windows": {"journal": "every step"},
    "availability": _operations("send"),
    "poll_steps": _operations("poll"),
    "send_reversals": _operations("send"),
    "end_offsets": _operations("end_offset"),
    "offset_reads": _operations("read"),
    "scripts": _operations("ask"),
    "promised_answers": _operations("request"),
    "elections": _state_changes("election"),
    "state_writes": _state_changes("zk_write"),
    "control_requests": _state_changes("ctl_recv"),
    "registrations": _znodes("/brokers/ids/…") | _state_changes("broker_registered", "leave_request"),
    "broker_logs": _state_changes("broker_registered"),
    "quorum_terms": _state_changes("controller_elected", "controller_resigned"),
    "controller_passes": _state_changes(
        "controller_elected", "controller_event", "controller_ready", "registrations_read"
    ),
    "beliefs": _state_changes("election", "ctl_send", "registrations_read"),
    "follower_watermarks": _state_changes("append", "hw", "log_start"),
    "leader_isrs": _state_changes("hw"),
    "isr_proposals": _state_changes("isr_propose"),
    "acknowledgements": _state_changes("produce_resp"),
    "refusals": _state_changes("produce_resp"),
    "refused_retries": _state_changes("batch_refused", "append", "become_leader", "producers_expired"),
    "consumer_fetches": _state_changes("fetch_resp"),
    "producer_id_blocks": _znodes("/latest_producer_id_block"),
    "metadata_caches": _state_changes("ctl_recv", "broker_start") | {"operations": "every line"},
    "epoch_answers": _state_changes("ofle"),
    "deleted_logs": {"replicas": "type `deleted`"} | _state_changes("ctl_recv", "broker_registered"),
    "topics": _znodes("/brokers/topics/…", "/config/topics/…", "/admin/delete_topics/…"),
    "deletions": _znodes("/admin/delete_topics/…", "/admin/reassign_partitions", "/brokers/topics/…"),
    "topic_configs": _znodes("/config/topics/…"),
    "configurations": _state_changes("config_in_force", "broker_start"),
    "property_versions": _znodes("/config/topics/…", "/config/brokers/…", "/config/changes/…"),
    "steps": {
        "state_changes": "`append`, `become_follower`, `become_leader`, and all others that the model has a rule about",
        "zookeeper": "`/brokers/topics/…`",
    },
    "compactions": _state_changes("compaction"),
    "log_loads": _state_changes(
        "recovery", "broker_start", "logs_close", "log_start", "become_leader", "become_follower", "broker_registered"
    ),
    "unexpected_errors": _state_changes("unexpected_error"),
    "segment_deletions": _state_changes("segment_delete"),
    "superseded": _state_changes("compaction")
    | _operations("poll", "send")
    | {"replicas": "types `record`, `batch` and `marker`"},
    "group_states": _state_changes("group_state"),
    "group_generations": _state_changes("group_assignment", "group_state") | _operations("assigned"),
    "group_commits": _state_changes("offset_commit", "group_state", "group_member"),
    "group_loads": _state_changes("gc_load", "gc_unload"),
    "group_retirements": _state_changes("offset_retired"),
    "transactions": {"replicas": "type `transition`"} | _state_changes("txn_state"),
    "client_transactions": _operations("begin_transaction", "send_offsets", "commit_transaction", "abort_transaction"),
    "markers": {"replicas": "type `marker`"},
    "transactional_batches": {"replicas": "type `batch`"},
    "aborted_transactions": {"replicas": "type `aborted`"},
    "producer_states": {"replicas": "type `producer`"},
    "marker_writes": _state_changes("txn_marker"),
    "stable_offsets": _state_changes("lso"),
    "transaction_answers": _state_changes("txn_response"),
    "transactional_commits": _state_changes("txn_offset_commit", "group_state"),
    "ownerships": _operations("assigned", "revoked", "lost", "leave", "subscribe"),
    "liveness": {"liveness": "every line"},
    "evidence": dict.fromkeys(PLACES, "lines that are unreadable, missing, or there twice"),
}
"""By the fact's name."""

LINE_KINDS: dict[str, tuple[str, ...]] = dict.fromkeys(PLACES, ()) | {
    "operations": tuple(kind.value for kind in OpKind),
    "replicas": ("replica", "record", "deleted", "marker", "batch", "transition", "aborted", "producer"),
    "state_changes": tuple(KINDS),
}
"""What the lines of some kinds of evidence say that they are."""

_NOTHING_WITHOUT = {
    "configurations": "config_in_force",
    "deleted_logs": "deleted",
    "group_commits": "offset_commit",
    "log_loads": "recovery",
    "refused_retries": "batch_refused",
    "superseded": "compaction",
    "transactional_commits": "txn_offset_commit",
    "transactions": "transition",
}
"""Lines without which a fact has no rows, whatever else it is made of."""

FINDINGS = "findings"
"""The table of what the checks found, which is made of all facts and is none."""

FACT_EVENTS: tuple[type[Event], ...] = (
    Append,
    BatchRefused,
    BecomeFollower,
    BecomeLeader,
    BrokerRegistered,
    BrokerStart,
    Compaction,
    ConfigurationInForce,
    ControllerElected,
    ControllerEvent,
    ControllerReady,
    ControllerResigned,
    ControlReceive,
    ControlSend,
    CoordinatorLoad,
    CoordinatorUnload,
    Election,
    FetchResponse,
    GroupAssignment,
    GroupMemberChange,
    GroupStateChange,
    HighWatermark,
    IsrPropose,
    LastStableOffset,
    LeaveRequest,
    LogsClose,
    LogStart,
    OffsetCommit,
    OffsetForLeaderEpoch,
    OffsetRetired,
    ProduceResponse,
    ProducersExpired,
    Recovery,
    RegistrationsRead,
    TransactionalOffsetCommit,
    TransactionMarker,
    TransactionResponse,
    TransactionStateChange,
    SegmentDelete,
    Truncate,
    UnexpectedError,
    ZkWrite,
)
"""The kinds of state change that facts are made of; of all other lines only the common fields are read."""


_ENOUGH_WITHOUT = {
    "controller_epochs": {"controller_elected"},
    "leader_epochs": {"append", "become_leader"},
    "refused_retries": {"producers_expired"},
    "registrations": {"leave_request"},
    "group_generations": {"group_assignment", "group_state"},
    "transactions": {"txn_state"},
}
"""Lines that add to a fact and without which it says what it must; by the fact's name."""


def missing_events(facts: Collection[str], emits: Collection[str]) -> dict[str, list[str]]:
    """Return the kinds of state changes that facts lack, by fact, if brokers log only some; empty if they log all."""
    lacking = {fact: _events_of(fact) - _ENOUGH_WITHOUT.get(fact, set()) - set(emits) for fact in facts}
    return {fact: sorted(events) for fact, events in lacking.items() if events}


MODELLED = frozenset(kind for subject in OF_BROKERS for kind in subject.legal if len(subject.legal) > 1)
"""The kinds of state changes that the model walks: where one is not logged, the steps after it look illegal.

Where the only kind of a subject is not logged, it takes no steps.
"""


def events_of(facts: Collection[str]) -> set[str]:
    """Return the kinds of state changes without which something of these facts can look wrong."""
    modelled = MODELLED if "steps" in facts else set[str]()
    return set(modelled).union(*(_events_of(fact) - _ENOUGH_WITHOUT.get(fact, set()) for fact in facts))


def _events_of(fact: str) -> set[str]:
    return {event for event in KINDS if f"`{event}`" in LINEAGE[fact].get("state_changes", "")}


def all_of(kind: str) -> set[str]:
    """Return a kind of evidence, and what its lines say that they are: absent is all of it where there are none."""
    return {kind, *LINE_KINDS[kind]}


def has_no_rows(fact: str, absent: frozenset[str]) -> bool:
    """Return whether all that a fact is made of is among the kinds of evidence and of lines that there are none of."""
    if fact in _NOTHING_WITHOUT:
        return _NOTHING_WITHOUT[fact] in absent
    named = {kind: re.findall(r"`([^`]+)`", lines) for kind, lines in LINEAGE[fact].items()}
    return all(kind in absent or (names and absent.issuperset(names)) for kind, names in named.items())


def kinds_of(needs: Sequence[str]) -> list[str]:
    """Return the kinds of evidence that these facts are made of."""
    return list(dict.fromkeys(kind for fact in needs for kind in LINEAGE[fact]))
