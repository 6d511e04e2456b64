"""Makes events of lines that were understood: of each, with what the lines before it told, the event or a note."""

import json
import re
from base64 import urlsafe_b64decode
from collections.abc import Callable
from dataclasses import replace

from harness.broker.wire.sentinels import NO_EPOCH
from harness.cluster.systems.kafka.process_state import (
    FOLLOWER,
    LATE_NS,
    LEADER,
    Answer,
    Appended,
    ControlRequest,
    ProcessState,
    Replica,
)
from harness.events import (
    NO_LEADER,
    NO_OFFSET,
    Append,
    BecomeFollower,
    BecomeLeader,
    BrokerRegistered,
    BrokerStart,
    BrokerStop,
    Compaction,
    ControlledPartition,
    ControllerElected,
    ControllerResigned,
    ControlReceive,
    Event,
    HighWatermark,
    IsrPropose,
    LogDirectoryFailure,
    Recovery,
    Truncate,
    ZkSession,
)
from harness.values import TopicPartition

_MEMBER = re.compile(r"brokerId=(\d+)")
_NAMED = re.compile(r"([\w.-]+)-(\d+)")
LEADER_AND_ISR, STOP_REPLICA = "LeaderAndIsr", "StopReplica"
APPLIED, IGNORED_OLD, IGNORED_SAME, NO_DISK = "applied", "ignored_old", "ignored_same", "storage_error"
STALE = "stale_controller_epoch"

Make = Callable[[ProcessState, re.Match[str]], Event | None]
"""What a line tells; of one that only says something of a later one, nothing."""


def starts(_process: ProcessState, _match: re.Match[str]) -> Event:
    """A process begins."""
    return BrokerStart(config_digest="", clean_marker=False, planted_bugs=[])


def hands_over(process: ProcessState, _match: re.Match[str]) -> None:
    """Note that the controller has moved all leaders away."""
    process.handed_over = True


def stops(process: ProcessState, _match: re.Match[str]) -> Event:
    """It ends cleanly."""
    return BrokerStop(controlled=process.handed_over)


def connects(process: ProcessState, match: re.Match[str]) -> Event:
    """It has a session."""
    anew = process.expired
    process.session, process.expired = int(match["session"], 16), False
    return ZkSession(state="reinit" if anew else "connected")


def loses_connection(_process: ProcessState, _match: re.Match[str]) -> Event:
    """It does not know what became of its session."""
    return ZkSession(state="suspended")


def expires(process: ProcessState, _match: re.Match[str]) -> Event:
    """Its session is gone."""
    process.session, process.expired = 0, True
    return ZkSession(state="lost")


def registers(process: ProcessState, match: re.Match[str]) -> Event:
    """It is registered."""
    process.broker_epoch = int(match["czxid"])
    return BrokerRegistered(czxid=process.broker_epoch)


def registers_somehow(_process: ProcessState, _match: re.Match[str]) -> Event:
    """It is registered by its session, and does not say in which transaction."""
    return BrokerRegistered(czxid=None)


def is_incarnated(process: ProcessState, match: re.Match[str]) -> None:
    """Note what the process calls itself, as it does for its whole life: what a session is with ZooKeeper."""
    process.session = int.from_bytes(urlsafe_b64decode(match["incarnation"] + "==")[8:])


def leads_quorum(process: ProcessState, match: re.Match[str]) -> Event:
    """It leads the quorum of controllers."""
    process.quorum_epoch = int(match["epoch"])
    return ControllerElected(controller_epoch=process.quorum_epoch, epoch_zk_version=None)


def resigns(process: ProcessState, _match: re.Match[str]) -> Event | None:
    """It no longer leads the quorum of controllers: its first line after its election about another epoch says so."""
    epoch, process.quorum_epoch = process.quorum_epoch, -1
    return ControllerResigned(controller_epoch=epoch, reason="another epoch") if epoch >= 0 else None


def is_elected(_process: ProcessState, match: re.Match[str]) -> Event:
    """It is controller."""
    return ControllerElected(controller_epoch=int(match["epoch"]), epoch_zk_version=int(match["version"]))


def opens(process: ProcessState, match: re.Match[str]) -> Event:
    """It has opened a log; it does not say in that line what it dropped."""
    key, end = _key(match), int(match["end"])
    process.log_ends[key] = end
    process.reaches(key, int(match["high_watermark"]))
    return Recovery(
        topic=key[0],
        partition=key[1],
        clean=None,
        log_start_offset=int(match["start"]),
        log_end_offset=end,
        recovery_point=None,
        high_watermark=int(match["high_watermark"]),
        truncated_bytes=None,
    )


def leads(process: ProcessState, match: re.Match[str]) -> Event:
    """It leads a partition."""
    key, epoch = _key(match), int(match["epoch"])
    isr = _ids(match["isr"])
    before = process.previous_epoch(key)
    offset = int(match["offset"])
    process.replicas[key] = Replica(
        role=LEADER, leader_epoch=epoch, isr=isr, zk_version=int(match["version"]), start_offset=offset
    )
    _begins_anew(process, match)
    process.has_in_sync(key, len(isr))
    return BecomeLeader(
        topic=key[0],
        partition=key[1],
        leader_epoch=epoch,
        previous_leader_epoch=before,
        log_start_offset=NO_OFFSET,
        high_watermark=int(match["high_watermark"]),
        log_end_offset=offset,
        isr=isr,
        zk_version=int(match["version"]),
    )


def follows(process: ProcessState, match: re.Match[str]) -> Event:
    """It follows a leader."""
    key, epoch = _key(match), int(match["epoch"])
    replica, before = process.replicas.get(key), process.previous_epoch(key)
    process.replicas[key] = Replica(
        role=FOLLOWER,
        leader_epoch=epoch,
        isr=[],
        zk_version=int(match["version"]),
        fetches_since=replica.fetches_since if replica is not None and replica.role == FOLLOWER else epoch,
    )
    _begins_anew(process, match)
    return BecomeFollower(
        topic=key[0],
        partition=key[1],
        leader=int(match["leader"]),
        leader_epoch=epoch,
        previous_leader_epoch=before,
        log_start_offset=NO_OFFSET,
        high_watermark=int(match["high_watermark"]),
        log_end_offset=int(match["offset"]),
    )


def stops_fetching(process: ProcessState, match: re.Match[str]) -> None:
    """The fetchers of an earlier epoch append nothing from now on."""
    for topic, partition in _NAMED.findall(match["partitions"]):
        replica = process.replicas.get((topic, int(partition)))
        if replica is not None:
            replica.fetches_since = replica.leader_epoch


def _begins_anew(process: ProcessState, match: re.Match[str]) -> None:
    """Note what is known of a replica that leads or follows from now on."""
    key = _key(match)
    process.log_ends[key] = int(match["offset"])
    process.reaches(key, int(match["high_watermark"]))
    process.follower_ends.pop(key, None)
    process.proposals.pop(key, None)


def has_isr(process: ProcessState, match: re.Match[str]) -> None:
    """Note the ISR that counts from now on."""
    replica = process.replicas.get(_key(match))
    if replica is not None:
        replica.isr, replica.zk_version = _ids(match["isr"]), int(match["version"])
        process.has_in_sync(_key(match), len(replica.isr))


def proposes(process: ProcessState, match: re.Match[str]) -> Event | None:
    """The leader proposes another ISR; the log end of a new member is logged when that member's fetch is done.

    A proposal that is logged again is a retry.
    """
    key, old, new = _key(match), _ids(match["old"]), [int(each) for each in _MEMBER.findall(match["new"])]
    replica = process.replicas.get(key)
    if replica is None or replica.role != LEADER:
        return None
    joins = set(new) > set(old)
    proposal = IsrPropose(
        topic=key[0],
        partition=key[1],
        kind="expand" if joins else "shrink",
        leader_epoch=int(match["epoch"]),
        old=old,
        new=new,
        zk_version=int(match["version"]),
        log_end_offset=process.log_ends.get(key, NO_OFFSET),
        high_watermark=process.high_watermarks.get(key, NO_OFFSET),
        epoch_start_offset=replica.start_offset,
        ends=[],
    )
    if not joins:
        return replace(proposal, ends=_ends(process, match, new))
    process.has_in_sync(key, len(new))
    if not _is_tried_again(process.proposals.get(key), proposal):
        process.proposals[key] = proposal
    return None


def fetches(process: ProcessState, match: re.Match[str]) -> Event | None:
    """A follower's fetch is done: the log of one that was proposed for it ended there."""
    key, follower = _key(match), int(match["follower"])
    process.follower_ends.setdefault(key, {})[follower] = int(match["end"])
    proposal = process.proposals.get(key)
    if proposal is None or proposal.ends or follower not in set(proposal.new) - set(proposal.old):
        return None
    process.proposals[key] = replace(proposal, ends=_ends(process, match, proposal.new))
    return process.proposals[key]


def _is_tried_again(before: IsrPropose | None, now: IsrPropose) -> bool:
    return before is not None and (before.zk_version, before.new) == (now.zk_version, now.new)


def _ends(process: ProcessState, match: re.Match[str], members: list[int]) -> list[int]:
    """Return the known log ends of members: of this broker, and of those that fetched."""
    key = _key(match)
    ends = {int(match["broker"]): process.log_ends.get(key, NO_OFFSET), **process.follower_ends.get(key, {})}
    return [ends.get(each, NO_OFFSET) for each in members]


def raises_high_watermark(process: ProcessState, match: re.Match[str]) -> Event | None:
    """Only a leader says so; what it appended before was told before, as both take the log's lock for it.

    A high watermark that moves from the end of a segment to the start of the next has the same offset and gives no
    event.
    """
    key = _key(match)
    process.reaches(key, int(match["new"]))
    replica = process.replicas.get(key)
    if replica is None or replica.role != LEADER or match["old"] == match["new"]:
        return None
    return HighWatermark(
        topic=key[0],
        partition=key[1],
        role=LEADER,
        leader_epoch=replica.leader_epoch,
        old=int(match["old"]),
        new=int(match["new"]),
        log_end_offset=process.log_ends.get(key),
        isr=list(replica.isr),
        zk_version=replica.zk_version,
        cause="",
    )


def appends(process: ProcessState, match: re.Match[str]) -> Event | None:
    """What was appended may be several batches, of which it says neither epochs nor producers.

    Where its role was told before what is read, that is empty. A follower has what it appends from the leader of the
    epoch in which its fetcher was started.
    """
    key = _key(match)
    process.log_ends[key] = int(match["next"])
    replica = process.replicas.get(key, Replica(role="", leader_epoch=NO_EPOCH, isr=[], zk_version=-1))
    if not replica.role and not process.begun_before:
        return None
    if replica.role == LEADER:
        batch = Appended(last_offset=int(match["last"]), leader_epoch=replica.leader_epoch, isr_size=replica.isr_size)
        process.appends(key, int(match["first"]), batch)
    return Append(
        topic=key[0],
        partition=key[1],
        role=replica.role,
        leader_epoch=replica.fetches_since if replica.role == FOLLOWER else replica.leader_epoch,
        base_offset=int(match["first"]),
        last_offset=int(match["last"]),
        batch_epoch=None,
        crc=None,
        producer_id=None,
        producer_epoch=None,
        base_sequence=None,
        isr_size=None,
        acks=None,
    )


def answers(process: ProcessState, match: re.Match[str]) -> None:
    """Note the answer to a producer whose batch was logged; an error does not name the ISR that caused it.

    The event is emitted a little later: another thread may see a high watermark before the one that raised it logs it.
    """
    completed = json.loads(match["request"])
    for topic in (completed["response"] or {}).get("responses", ()):
        for partition in topic["partitionResponses"]:
            key, base_offset = (topic["name"], partition["index"]), partition["baseOffset"]
            batch = process.appended.get(key, {}).pop(base_offset, None)
            if batch is None or partition["errorCode"]:
                continue
            process.answers.append(
                Answer(
                    time_ns=process.time_ns,
                    due_ns=process.lasted_ns + LATE_NS,
                    key=key,
                    acks=completed["request"]["acks"],
                    base_offset=base_offset,
                    batch=batch,
                    high_watermark=process.high_watermarks.get(key, NO_OFFSET),
                    correlation_id=completed["requestHeader"]["correlationId"],
                    client=completed["requestHeader"]["clientId"],
                    duration_ms=completed["totalTimeMs"],
                )
            )


def truncates(process: ProcessState, match: re.Match[str]) -> Event:
    """The line does not say why; the high watermark was at least the one that was logged last."""
    key, to = _key(match), int(match["to"])
    replica, log_end = process.replicas.get(key), process.log_ends.get(key)
    high_watermark = process.high_watermarks.get(key)
    process.log_ends[key] = to
    if high_watermark is not None:
        process.high_watermarks[key] = min(high_watermark, to)
    return Truncate(
        topic=key[0],
        partition=key[1],
        log_end_offset=log_end,
        to=to,
        high_watermark=high_watermark,
        leader_epoch=None if replica is None else replica.leader_epoch,
        reason="",
        asked_epoch=None,
        answer_epoch=None,
        answer_end_offset=None,
        latest_epoch=None,
        local_epoch=None,
        local_end_offset=None,
    )


def begins(process: ProcessState, match: re.Match[str]) -> None:
    """Forget a request that never ended: a controller's next connection counts from the beginning again."""
    process.requests.pop(_request(match), None)


def is_requested(process: ProcessState, match: re.Match[str]) -> None:
    """Note a partition of a LeaderAndIsr request; its event is emitted when the request is done."""
    request = process.requests.setdefault(
        _request(match), ControlRequest(controller_epoch=int(match["controller_epoch"]))
    )
    request.partitions[_key(match)] = ControlledPartition(
        topic=match["topic"],
        partition=int(match["partition"]),
        leader=int(match["leader"]),
        leader_epoch=int(match["epoch"]),
        isr=_ids(match["isr"]),
        zk_version=int(match["version"]),
        replicas=_ids(match["replicas"]),
        verdict=APPLIED,
    )


def ignores(process: ProcessState, match: re.Match[str]) -> None:
    """Note that a partition of a request changes nothing."""
    request = process.requests.get(_request(match))
    if request is not None and _key(match) in request.partitions:
        verdict = NO_DISK if match["offline"] else IGNORED_SAME if match["how"] == "matches" else IGNORED_OLD
        request.partitions[_key(match)] = replace(request.partitions[_key(match)], verdict=verdict)


def refuses(process: ProcessState, match: re.Match[str]) -> Event:
    """A request is refused as a whole."""
    process.requests.pop(_request(match), None)
    return _received(LEADER_AND_ISR, int(match["sender"]), int(match["controller_epoch"]), [], STALE)


def obeys(process: ProcessState, match: re.Match[str]) -> Event | None:
    """A request is done."""
    request = process.requests.pop(_request(match), None)
    if request is None:
        return None
    return _received(LEADER_AND_ISR, int(match["sender"]), request.controller_epoch, [*request.partitions.values()])


def is_to_delete(process: ProcessState, match: re.Match[str]) -> None:
    """Remember a request to delete a replica; its effect shows in a later line."""
    process.deletions[_key(match)] = (int(match["sender"]), int(match["controller_epoch"]), int(match["epoch"]))


def deletes(process: ProcessState, match: re.Match[str]) -> Event | None:
    """A log is renamed for deletion, as a controller requested."""
    key = _key(match)
    process.forgets(key)
    if key not in process.deletions:
        return None
    sender, controller_epoch, leader_epoch = process.deletions.pop(key)
    stopped = ControlledPartition(
        topic=key[0],
        partition=key[1],
        leader=NO_LEADER,
        leader_epoch=leader_epoch,
        isr=[],
        zk_version=-1,
        replicas=[],
        verdict=APPLIED,
    )
    return _received(STOP_REPLICA, sender, controller_epoch, [stopped])


def _received(
    api: str, sender: int, controller_epoch: int, partitions: list[ControlledPartition], verdict: str = APPLIED
) -> Event:
    """Return a request; no line has the broker epoch that it was for."""
    return ControlReceive(
        api=api,
        sender=sender,
        controller_epoch=controller_epoch,
        request_broker_epoch=None,
        verdict=verdict,
        partitions=partitions,
        live_brokers=None,
    )


def _request(match: re.Match[str]) -> tuple[int, int]:
    return int(match["sender"]), int(match["correlation"])


def _key(match: re.Match[str]) -> TopicPartition:
    return match["topic"], int(match["partition"])


def _ids(text: str) -> list[int]:
    return [int(each) for each in text.split(",") if each.strip()]


def cleans(_process: ProcessState, match: re.Match[str]) -> Event:
    """The line is written before anything is taken; what was cleaned before is cleaned again."""
    return Compaction(
        topic=match["topic"], partition=int(match["partition"]), from_offset=0, until_offset=int(match["until"])
    )


def meets_error(process: ProcessState, match: re.Match[str]) -> None:
    """Note what it could not do on its disk."""
    process.disk_error = match["error"]


def loses_directory(process: ProcessState, match: re.Match[str]) -> Event:
    """Its replicas of a directory are offline."""
    return LogDirectoryFailure(error=process.disk_error, replicas=len(match["replicas"].split(",")))
