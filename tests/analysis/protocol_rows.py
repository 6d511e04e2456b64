"""Rows of the facts about the protocol and about clients' order, in a few words each, as `fact_rows` has others."""

from collections.abc import Sequence
from typing import Any

from harness.store.history import Sign
from tests.analysis.fact_rows import RUN, TOPIC, Row

S = 1_000_000_000
_HERE = {"run_id": RUN, "topic": TOPIC, "partition": 0}


def _line(broker: int, seq: int = 0) -> dict[str, Any]:
    return {"broker": broker, "incarnation": f"inc-{broker}", "seq": seq, "time_ns": seq}


def elected(leader: int | None, isr: list[int] | None = None, **other: Any) -> Row:
    """An offline election by controller 1 of a partition on brokers 1, 2, 3, all of them in the ISR and online."""
    row = {**_HERE, **_line(1), "strategy": "offline", "trigger": "test", "controller_epoch": 1, "profile": "2.5"}
    row |= {"assigned": [1, 2, 3], "online": [1, 2, 3], "shutting_down": [], "unclean_allowed": False, "unclean": False}
    row |= {"previous_leader": 1, "previous_leader_epoch": 0, "previous_isr": [1, 2, 3]}
    row |= {"leader": leader, "leader_epoch": 1, "isr": isr, "error": ""}
    return "elections", row | other


def wrote(expected: int, version: int, **other: Any) -> Row:
    """A leader that replaced version `expected` of the state."""
    row = {**_HERE, **_line(1), "op": "set", "expected_version": expected, "result": "ok", "zk_version": version}
    return "state_writes", row | {"writer": "leader"} | other


def requested(controller_epoch: int = 1, *, seq: int = 0, **other: Any) -> Row:
    """A LeaderAndIsr that broker 2 applied."""
    row = {**_HERE, **_line(2, seq), "api": "LeaderAndIsr", "sender": 1, "controller_epoch": controller_epoch}
    row |= {"request_broker_epoch": 20, "broker_epoch": 20, "verdict": "applied", "leader_epoch": 0}
    return "control_requests", row | {"partition_verdict": "applied"} | other


def registered(broker: int, czxid: int | None = 10, *, session: str = "0x1", **other: Any) -> Row:
    """A registration, as ZooKeeper holds it."""
    row = {"run_id": RUN, "source": "zookeeper", "broker": broker, "czxid": czxid, "session": session}
    return "registrations", row | other


def with_log(broker: int) -> Row:
    """A broker whose log is there."""
    return "broker_logs", {"run_id": RUN, "broker": broker}


def waited_for(isr: list[int], to: int, *, version: int | None = 0, **other: Any) -> Row:
    """Broker 1, leader in epoch 0, raised its high watermark to `to` when all of `isr` had come there."""
    row = {**_HERE, "broker": 1, "leader_epoch": 0, "zk_version": version, "isr": isr, "advances": 1}
    return "leader_isrs", row | {"incarnation": "inc-1", "seq": 0, "high_watermark": to} | other


def proposed(new: list[int], ends: list[int] | None, **other: Any) -> Row:
    """Broker 1 is about to write a larger ISR than itself; its high watermark is 5, and its epoch began at 3."""
    row = {**_HERE, **_line(1), "leader_epoch": 0, "kind": "expand", "old_isr": [1], "new_isr": new, "ends": ends}
    return "isr_proposals", row | {"log_end_offset": 9, "high_watermark": 5, "epoch_start_offset": 3} | other


def joined(broker: int, zxid: int, **other: Any) -> Row:
    """A leader took a follower into the ISR."""
    row = {**_HERE, "zxid": zxid, "zk_version": 1, "leader": 1, "leader_epoch": 0, "old_isr": [1]}
    return "isr_changes", row | {"new_isr": [1, broker], "writer": "leader"} | other


def acknowledged(offset: int, *, high_watermark: int, isr_size: int = 2, **other: Any) -> Row:
    """Broker 1, leader in epoch 0, acknowledged acks=all up to `offset`."""
    row = {**_HERE, "broker": 1, "leader_epoch": 0, "acks": -1, "isr_size": isr_size, "answers": 1, "first_offset": 0}
    return "acknowledgements", row | {"seq": 0, "offset": offset, "high_watermark": high_watermark} | other


def refused(isr_size: int, *, error: int = 20, **other: Any) -> Row:
    """Broker 1, leader in epoch 0, refused what was sent with acks=all."""
    row = {**_HERE, "broker": 1, "leader_epoch": 0, "acks": -1, "error": error, "isr_size": isr_size, "answers": 3}
    return "refusals", row | {"seq": 0, "from_ns": 0, "to_ns": 0} | other


def refused_retry(offset: int, **other: Any) -> Row:
    """Broker 1, leader in epoch 3 since its log ended at 10, refused a record that it had written at `offset`."""
    row = {**_HERE, **_line(1), "leader_epoch": 3, "producer_id": 7, "producer_epoch": 0, "base_sequence": 4}
    row |= {"error": 45, "offset": offset, "last_offset": offset, "log_start_offset": 0, "leader_end_offset": 10}
    row |= {"written_since": False, "overwritten": False, "later_batches": 0, "later_epoch": False}
    return "refused_retries", row | other


def served(offset: int, *, high_watermark: int, believed: int = -1, **other: Any) -> Row:
    """Broker 1, leader in epoch 3, served consumers up to `offset`."""
    row = {**_HERE, "broker": 1, "leader_epoch": 3, "current_leader_epoch": believed, "answers": 1, "seq": 0}
    return "consumer_fetches", row | {"offset": offset, "high_watermark": high_watermark} | other


def appended(broker: int, first: int, last: int, *, epoch: int = 0, **other: Any) -> Row:
    """A broker wrote offsets `first` to `last` in a leader epoch; broker 1 leads."""
    row = {**_HERE, "broker": broker, "role": "leader" if broker == 1 else "follower", "leader_epoch": epoch}
    return "appends", row | {"first_offset": first, "last_offset": last, "batches": 1} | other


def cached(broker: int = 1, **other: Any) -> Row:
    """A broker's cache in the end: brokers 1 and 2 live, and 1 leads in epoch 0; the load ended after 100 s."""
    row = {**_HERE, "broker": broker, "incarnation": f"inc-{broker}", "ended_ns": 100 * 10**9, "live_brokers": [1, 2]}
    return "metadata_caches", row | {"seq": 0, "leader": 1, "leader_epoch": 0, "isr": [1, 2]} | other


def answered(epoch: int, end: int, *, to: int, **other: Any) -> Row:
    """Broker 1, leader in epoch 3, answered broker 2 where epoch `to` ends; its log is at 10, its epochs 0, 2 and 3."""
    row = {**_HERE, **_line(1), "leader_epoch": 3, "sender": 2, "current_leader_epoch": 3, "asked_epoch": to}
    row |= {"answer_epoch": epoch, "end_offset": end, "error": 0, "log_end_offset": 10}
    return "epoch_answers", row | {"leader_epochs": [[0, 0], [2, 4], [3, 7]]} | other


def block(version: int, first: int, **other: Any) -> Row:
    """A thousand producer ids that broker 1 claimed."""
    row = {"run_id": RUN, "zxid": 50 + version, "zk_version": version, "broker": 1, "first": first}
    return "producer_id_blocks", row | {"last": first + 999} | other


def topic(name: str = TOPIC, *, present: bool, **other: Any) -> Row:
    """A topic in the end."""
    row = {"run_id": RUN, "topic": name, "present": present, "zxid": 50}
    return "topics", row | {"configured": present, "deletion_pending": False} | other


def deletion(name: str = TOPIC, **other: Any) -> Row:
    """A request at 10 s for the deletion of a topic on brokers 1 and 2."""
    row = {"run_id": RUN, "topic": name, "zxid": 50, "until_zxid": 60, "time_ns": 10 * S}
    return "deletions", row | {"replicas": [1, 2], "assigned_ns": 0, "reassigned": False} | other


def put_aside(**other: Any) -> Row:
    """A folder that broker 1 put aside 10 s after it had begun, and still had after 75 s."""
    row = {**_HERE, "broker": 1, "folder": "orders-0.0-delete", "began_ns": 0, "stopped_ns": 10 * S}
    return "deleted_logs", row | {"lived_ns": 75 * S, "disk_failed": False} | other


def configured(zxid: int = 50, *, until_zxid: int | None = None, **other: Any) -> Row:
    """A version of the topic's own configuration; what it does not name, the broker's own says."""
    return "topic_configs", {"run_id": RUN, "topic": TOPIC, "zxid": zxid, "until_zxid": until_zxid} | other


def ended_at(offset: int, *, at_s: float) -> Row:
    """A consumer was told where the partition ends."""
    at_ns = int(at_s * 1e9)
    row = {**_HERE, "process": "c0", "index": 0, "offset": offset, "invoke_ns": at_ns, "complete_ns": at_ns + 1}
    return "end_offsets", row


def stepped(previous: int, offset: int, *, polls: tuple[int, int] = (0, 1), **other: Any) -> Row:
    """A reader that came from offset `previous` to `offset`, in these polls."""
    row = {**_HERE, "process": "c0", "mode": "assign", "previous_index": polls[0], "previous_offset": previous}
    row |= {"previous_leader_epoch": 0}
    return "poll_steps", row | {"index": polls[1], "time_ns": 15, "offset": offset, "leader_epoch": 0} | other


def overtaken(*, acknowledged_ns: int, invoke_ns: int, **other: Any) -> Row:
    """A send, asked at `invoke_ns`, that landed before an earlier one, which was acknowledged at `acknowledged_ns`."""
    row = {**_HERE, "process": "p0", "acks": -1, "earlier_index": 0, "earlier_offset": 7, "index": 1, "offset": 4}
    row |= {"earlier_complete_ns": acknowledged_ns, "value": "b", "invoke_ns": invoke_ns, "leader_epoch": 0}
    row |= {"earlier_leader_epoch": 0}
    return "send_reversals", row | other


def injected(*, healed_s: float | None, **other: Any) -> Row:
    """A fault."""
    healed_ns = None if healed_s is None else int(healed_s * 1e9)
    row = {"run_id": RUN, "injection": 0, "fault": "kill", "intended_ns": 0, "injected_ns": 1, "healed_ns": healed_ns}
    return "fault_windows", row | other


def sign(sign: Sign, wrong: str = "", **other: Any) -> Row:
    """A sign of life that was looked for 60 s after the last heal, at 10 s, on a machine at rest."""
    row = {"run_id": RUN, "sign": sign.value, "shown": not wrong, "detail": wrong, "time_ns": 70 * S}
    row |= {"healed_ns": 10 * S, "since_ns": 10 * S, "cpu_percent": 30, "load_percent": 50, "late_ms": 3}
    return "liveness", row | other


def compacted(to: int, **other: Any) -> Row:
    """A cleaner of broker 1 that went through all before `to`."""
    return "compactions", {**_HERE, **_line(1), "from_offset": 0, "until_offset": to} | other


def superseded(offset: int, **other: Any) -> Row:
    """A record that a later committed one with its key replaces."""
    row = {**_HERE, "offset": offset, "last_offset": offset + 1, "compacted_to": 100, "committed": True}
    return "superseded", row | other


def walked(subject: str = "replica", **other: Any) -> Row:
    """Steps of a kind of subject in one life of broker 1."""
    row = {"run_id": RUN, "subject": subject, "broker": 1, "incarnation": "inc-1", "steps": 7, "unread": 0}
    return "steps", row | other


def illegal(**other: Any) -> Row:
    """A step of a replica on broker 1 that breaks a rule."""
    row = {**_HERE, **_line(1, 7), "subject": "replica", "rule": "replica.leader-keeps-log", "source": "KIP-101"}
    row |= {"sentence": "A leader truncates nothing.", "name": "orders-0", "before": "role=leader"}
    return "steps", row | {"step": '{"ev":"truncate"}'} | other


def believed(alive: list[int], leaving: Sequence[int] | None = (), **other: Any) -> Row:
    """An election of controller 1, 4 s after it had read that brokers 1, 2 and 3 are registered, as it knew before."""
    row = {**_HERE, **_line(1), "acted": "election", "controller_epoch": 1, "alive": alive, "leaving": leaving}
    row |= {"made_ns": 10 * S, "read_ns": 6 * S, "possible": [1, 2, 3], "certain": [1, 2, 3], "czxids": [11, 12, 13]}
    return "beliefs", row | other


def gone_through(brokers: list[int], **other: Any) -> Row:
    """A BrokerChange that controller 1 carried out from second 10 to second 11, by registrations 11, 12 …"""
    row = {"run_id": RUN, **_line(1), "controller_epoch": 1, "name": "BrokerChange", "brokers": brokers}
    return "controller_passes", row | {
        "czxids": [10 + b for b in brokers],
        "began_ns": 10 * S,
        "time_ns": 11 * S,
    } | other


def told_follower(high_watermark: int | None, **other: Any) -> Row:
    """Broker 2 copied up to offset 9 of leader 1, whose high watermark was 7 then, and lived on for 5 s.

    Both logs start at offset 3.
    """
    row = {**_HERE, "broker": 2, "leader_epoch": 0, "incarnation": "inc-2", "seq": 3, "time_ns": 10 * S}
    row |= {"lived_ns": 15 * S, "last_offset": 9, "leader": 1, "leader_high_watermark": 7, "disk_failed": False}
    row |= {"leader_log_start_offset": 3, "log_start_offset": 3}
    return "follower_watermarks", row | {"high_watermark": high_watermark} | other


def led_quorum(broker: int, epoch: int, *, led_until_ns: int, resigned: bool = True, **other: Any) -> Row:
    """A broker that a quorum elected, by default at 0 s, and that resigned."""
    row = {"run_id": RUN, **_line(broker), "controller_epoch": epoch, "led_until_ns": led_until_ns}
    return "quorum_terms", row | {"resigned": resigned} | other


def found_log(**other: Any) -> Row:
    """A log of broker 2 from offset 3 to 9, synced up to 7, that is trusted after a clean stop."""
    row = {**_HERE, **_line(2), "clean": True, "log_start_offset": 3, "log_end_offset": 9, "recovery_point": 7}
    row |= {"previous_incarnation": "inc-before", "closed": True, "previous_log_start_offset": 3}
    return "log_loads", row | other


def unforeseen(**other: Any) -> Row:
    """An error of broker 1."""
    row = {
        **_line(1),
        "operation": "election.failed",
        "error": "KeyError: 3",
        "at": "controller.py:7 _elect",
    }
    return "unexpected_errors", row | other


def deleted_segment(reason: str, **other: Any) -> Row:
    """Offsets 3 to 5 of broker 1, all that can be deleted for whatever reason."""
    row = {**_HERE, **_line(1), "reason": reason, "base_offset": 3, "end_offset": 6, "log_start_offset": 6}
    row |= {"high_watermark": 6, "segment_bytes": 100, "log_bytes": 300, "retention_bytes": 200}
    return "segment_deletions", row | {"youngest_ms": 1_000, "now_ms": 2_001, "retention_ms": 1_000} | other


def in_force(value: str, *, name: str = "retention.ms", **other: Any) -> Row:
    """A value of a property on which broker 1 acted from second 20 to second 60; it began at second 0."""
    row = {"run_id": RUN, **_line(1), "topic": TOPIC, "property": name, "value": value, "began_ns": 0}
    return "configurations", row | {"time_ns": 20 * S, "until_ns": 60 * S} | other


def version_of(
    entity: str, value: str | None, *, from_s: float = 0, until_s: float | None = None, noted: bool = True, **other: Any
) -> Row:
    """A version of a configuration, with a notification 0.1 s after its end if that is so."""
    row = {"run_id": RUN, "entity": entity, "property": "retention.ms", "value": value, "time_ns": int(from_s * S)}
    if until_s is not None:
        row |= {"until_ns": int(until_s * S), "until_zxid": 1, "ended_by": "set"}
        row |= {"noted_ns": int((until_s + 0.1) * S)} if noted else {}
    return "property_versions", row | other
