"""Makes events of lines that were understood: of each, with what the lines before it told, the event or a note."""

import re
from base64 import urlsafe_b64decode
from collections.abc import Callable
from dataclasses import replace

from harness.cluster.systems.kafka.process_state import (
    FOLLOWER,
    LEADER,
    NO_EPOCH,
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
    ControlReceive,
    Event,
    HighWatermark,
    LogDirectoryFailure,
    Recovery,
    Truncate,
    ZkSession,
)
from harness.values import TopicPartition

LEADER_AND_ISR, STOP_REPLICA = "LeaderAndIsr", "StopReplica"
APPLIED, IGNORED_OLD, IGNORED_SAME = "applied", "ignored_old", "ignored_same"
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


def is_incarnated(process: ProcessState, match: re.Match[str]) -> None:
    """Note what the process calls itself, as it does for its whole life: what a session is with ZooKeeper."""
    process.session = int.from_bytes(urlsafe_b64decode(match["incarnation"] + "==")[8:])


def leads_quorum(_process: ProcessState, match: re.Match[str]) -> Event:
    """It leads the quorum of controllers."""
    return ControllerElected(controller_epoch=int(match["epoch"]), epoch_zk_version=None)


def is_elected(_process: ProcessState, match: re.Match[str]) -> Event:
    """It is controller."""
    return ControllerElected(controller_epoch=int(match["epoch"]), epoch_zk_version=int(match["version"]))


def opens(process: ProcessState, match: re.Match[str]) -> Event:
    """It has opened a log; it does not say in that line what it dropped."""
    key, end = _key(match), int(match["end"])
    process.log_ends[key] = end
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
    process.replicas[key] = Replica(role=LEADER, leader_epoch=epoch, isr=isr, zk_version=int(match["version"]))
    process.log_ends[key] = int(match["offset"])
    return BecomeLeader(
        topic=key[0],
        partition=key[1],
        leader_epoch=epoch,
        previous_leader_epoch=before,
        log_start_offset=NO_OFFSET,
        high_watermark=int(match["high_watermark"]),
        log_end_offset=int(match["offset"]),
        isr=isr,
        zk_version=int(match["version"]),
    )


def follows(process: ProcessState, match: re.Match[str]) -> Event:
    """It follows a leader."""
    key, epoch = _key(match), int(match["epoch"])
    before = process.previous_epoch(key)
    process.replicas[key] = Replica(role=FOLLOWER, leader_epoch=epoch, isr=[], zk_version=int(match["version"]))
    process.log_ends[key] = int(match["offset"])
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


def has_isr(process: ProcessState, match: re.Match[str]) -> None:
    """Note the ISR that counts from now on."""
    replica = process.replicas.get(_key(match))
    if replica is not None:
        replica.isr, replica.zk_version = _ids(match["isr"]), int(match["version"])


def raises_high_watermark(process: ProcessState, match: re.Match[str]) -> Event | None:
    """Only a leader says so; the line has no log end."""
    key = _key(match)
    replica = process.replicas.get(key)
    if replica is None or replica.role != LEADER:
        return None
    return HighWatermark(
        topic=key[0],
        partition=key[1],
        role=LEADER,
        leader_epoch=replica.leader_epoch,
        old=int(match["old"]),
        new=int(match["new"]),
        log_end_offset=None,
        isr=list(replica.isr),
        zk_version=replica.zk_version,
        cause="",
    )


def appends(process: ProcessState, match: re.Match[str]) -> Event | None:
    """What was appended may be several batches, of which it says neither epochs nor producers.

    Where its role was told before what is read, that is empty.
    """
    key = _key(match)
    process.log_ends[key] = int(match["next"])
    replica = process.replicas.get(key, Replica(role="", leader_epoch=NO_EPOCH, isr=[], zk_version=-1))
    if not replica.role and not process.begun_before:
        return None
    return Append(
        topic=key[0],
        partition=key[1],
        role=replica.role,
        leader_epoch=replica.leader_epoch,
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


def truncates(process: ProcessState, match: re.Match[str]) -> Event:
    """It says neither why nor how far the high watermark was."""
    key, to = _key(match), int(match["to"])
    replica, log_end = process.replicas.get(key), process.log_ends.get(key)
    process.log_ends[key] = to
    return Truncate(
        topic=key[0],
        partition=key[1],
        log_end_offset=log_end,
        to=to,
        high_watermark=None,
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
    """Note a partition of a LeaderAndIsr request, which is told of when the request is done."""
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
        verdict = IGNORED_SAME if match["how"].startswith("matches") else IGNORED_OLD
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
    """Note who wants a replica deleted; that it is shows later."""
    process.deletions[_key(match)] = (int(match["sender"]), int(match["controller_epoch"]), int(match["epoch"]))


def deletes(process: ProcessState, match: re.Match[str]) -> Event | None:
    """A log is put aside for good, as somebody wanted."""
    key = _key(match)
    process.replicas.pop(key, None)
    process.log_ends.pop(key, None)
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


def meets_error(teller: Teller, match: re.Match[str]) -> None:
    """Note what it could not do on its disk."""
    teller.disk_error = match["error"]


def loses_directory(teller: Teller, match: re.Match[str]) -> Event:
    """Its replicas of a directory are offline."""
    return LogDirectoryFailure(error=teller.disk_error, replicas=len(match["replicas"].split(",")))
