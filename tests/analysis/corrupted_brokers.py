"""Corruptions of what ZooKeeper holds and of what brokers say that they did."""

import json
from itertools import pairwise

from harness.store.history import DeletedLog, Sign
from tests.analysis.corrupted_replicas import acknowledged, last_isr, replica, states
from tests.analysis.model_cluster import LOOSE, ORDERS
from tests.analysis.model_evidence import (
    LIVENESS,
    MS,
    REPLICAS,
    STATE_CHANGES,
    ZOOKEEPER,
    Evidence,
    Line,
    state_change_log,
)


def _change(line: Line, state: Line, **fields: object) -> None:
    line["data"] = json.dumps({**state, **fields})


def _last(run: Evidence, ev: str, **fields: object) -> Line | None:
    """Return the last line of a kind about the kept topic."""
    lines = list(run.lines(STATE_CHANGES, ev=ev, topic=ORDERS, **fields))
    return max(lines, key=lambda line: line["mono"], default=None)


def say(run: Evidence, broker: int, ev: str, **fields: object) -> bool:
    """Have a broker say one thing more; return that it did."""
    lines = run.files[STATE_CHANGES][state_change_log(broker)]
    names = ("ts", "mono", "seq", "broker", "inc", "session", "broker_epoch")
    common = {name: lines[-1][name] for name in names}
    lines.append({**common, "seq": common["seq"] + 1, "ev": ev, **fields})
    return True


def _set(run: Evidence, **fields: object) -> bool:
    """Write one version more of the first partition's state."""
    line, state = states(run, 0)[-1]
    last = max(change["zxid"] for change in run.lines(ZOOKEEPER))
    data = json.dumps({**state, **fields})
    run.add(
        ZOOKEEPER,
        "zookeeper.jsonl",
        {**line, "zxid": last + 1, "type": "set", "version": line["version"] + 1, "data": data},
    )
    return True


# ZooKeeper


def leave_isr(run: Evidence) -> bool:
    for partition in (0, 1):
        for (line, state), (_, following) in pairwise(states(run, partition)):
            if following["leader_epoch"] == state["leader_epoch"] and len(state["isr"]) > 1:
                _change(line, state, isr=[broker for broker in state["isr"] if broker != state["leader"]])
                return True
    return False


def stranger_in_isr(run: Evidence) -> bool:
    risen = {line["zk_version"] for line in run.lines(STATE_CHANGES, ev="hw", role="leader", topic=ORDERS, partition=0)}
    for line, state in states(run, 0)[:-1]:
        if line["version"] in risen:
            _change(line, state, isr=[*state["isr"], 9])
            return True
    return False


def elect_outsider(run: Evidence) -> bool:
    for partition in (0, 1):
        for (line, state), (_, following) in pairwise(states(run, partition)):
            others = [broker for broker in state["isr"] if broker != following["leader"]]
            if following["leader"] not in (-1, state["leader"]) and state["leader"] in others:
                _change(line, state, isr=others)
                return True
    return False


def _configure(run: Evidence, topic: str, **properties: str) -> None:
    (line,) = run.lines(ZOOKEEPER, path=f"/config/topics/{topic}")
    line["data"] = json.dumps({"version": 1, "config": properties})


def forbid_unclean(run: Evidence) -> bool:
    _configure(run, LOOSE, **{"unclean.leader.election.enable": "false"})
    return any(True for _ in run.lines(STATE_CHANGES, ev="election", unclean=True))


def ask_for_more(run: Evidence) -> bool:
    _configure(run, ORDERS, **{"min.insync.replicas": "3"})
    return any(True for _ in run.lines(STATE_CHANGES, ev="produce_resp", topic=ORDERS, acks=-1, isr_size=2))


def stay_out(run: Evidence) -> bool:
    _, state = states(run, 0)[-1]
    gone = {broker for broker in (1, 2, 3) if f"/brokers/ids/{broker}" not in run.versions}
    followers = [broker for broker in state["isr"] if broker != state["leader"] and broker not in gone]
    return bool(followers) and _set(run, isr=[broker for broker in state["isr"] if broker != followers[0]])


def delete_topic(run: Evidence) -> bool:
    run.znode(f"/brokers/topics/{LOOSE}", None)
    return True


def never_delete(run: Evidence) -> bool:
    """A deletion is asked for, all brokers are there, and the topic still is after two minutes."""
    if any(f"/brokers/ids/{broker}" not in run.versions for broker in (1, 2, 3)) or "/controller" not in run.versions:
        return False
    run.znode(f"/admin/delete_topics/{LOOSE}", "")
    run.tick(120_000)
    run.znode("/config/changes", "")
    return True


def keep_folder(run: Evidence) -> bool:
    heard = [line for line in run.lines(STATE_CHANGES, broker=1, ev="ctl_recv") if line["verdict"] == "applied"]
    if not heard:
        return False
    gone = heard[-1]["partitions"][0] | {"topic": "gone", "partition": 0, "verdict": "applied"}
    request = {name: heard[-1][name] for name in ("sender", "controller_epoch", "request_broker_epoch", "verdict")}
    say(run, 1, "ctl_recv", **request, api="StopReplica", partitions=[gone], live_brokers=None)
    minutes_later = run.files[STATE_CHANGES][state_change_log(1)][-1]["mono"] + 120_000 * MS
    say(run, 1, "hw_checkpoint", mono=minutes_later, count=0)
    folder = DeletedLog(broker=1, topic="gone", partition=0, folder="gone-0.0-delete")
    run.add(REPLICAS, "replicas/1/deleted.jsonl", folder)
    return True


def same_controller_epoch(run: Evidence) -> bool:
    epochs = list(run.lines(ZOOKEEPER, path="/controller_epoch"))
    if len(epochs) > 2:
        epochs[-1]["data"] = epochs[-2]["data"]
    return len(epochs) > 2


def claim_again(run: Evidence) -> bool:
    blocks = list(run.lines(ZOOKEEPER, path="/latest_producer_id_block"))
    if len(blocks) > 1:
        blocks[-1]["data"] = blocks[-2]["data"]
    return len(blocks) > 1


# State-change logs


def second_leader(run: Evidence) -> bool:
    _, state = states(run, 0)[-1]
    others = [broker for broker in last_isr(run, 0) if broker != state["leader"]]
    if state["leader"] == -1 or not others:
        return False
    say(
        run,
        others[0],
        "become_leader",
        topic=ORDERS,
        partition=0,
        leader_epoch=state["leader_epoch"],
        previous_leader_epoch=state["leader_epoch"] - 1,
        log_start_offset=0,
        high_watermark=0,
        log_end_offset=0,
        isr=state["isr"],
        zk_version=0,
    )
    return True


def second_controller(run: Evidence) -> bool:
    elected = next(run.lines(STATE_CHANGES, ev="controller_elected"))
    other = next(broker for broker in (1, 2, 3) if broker != elected["broker"])
    fields = {name: elected[name] for name in ("controller_epoch", "epoch_zk_version")}
    say(run, other, "controller_elected", **fields)
    return True


def blind_write(run: Evidence) -> bool:
    line = next(run.lines(STATE_CHANGES, ev="zk_write", op="set"), None)
    if line is not None:
        line["expected_version"] -= 1
    return line is not None


def _last_mark(run: Evidence) -> Line | None:
    """Return the last time that a leader raised its high watermark, where that is the log's end still."""
    line = _last(run, "hw", role="leader")
    if line is None:
        return None
    is_end = line["new"] == replica(run, line["broker"], line["partition"])["log_end_offset"]
    return line if is_end and len(last_isr(run, line["partition"])) > 1 else None


def mark_too_far(run: Evidence) -> bool:
    line = _last_mark(run)
    if line is not None:
        line["new"] = line["log_end_offset"] + 5
    return line is not None


def mark_back(run: Evidence) -> bool:
    line = _last_mark(run)
    if line is None or line["new"] < 2:
        return False
    own = run.files[STATE_CHANGES][state_change_log(line["broker"])]
    if own[-1]["inc"] != line["inc"]:
        return False
    repeated = {name: value for name, value in line.items() if name not in own[-1] or name in ("topic", "partition")}
    fields = {**repeated, **{name: line[name] for name in ("role", "leader_epoch", "isr", "zk_version", "cause")}}
    say(run, line["broker"], "hw", **{**fields, "old": line["new"], "new": 1, "log_end_offset": line["log_end_offset"]})
    return True


def move_watermark(run: Evidence) -> bool:
    """A follower says that its high watermark was where it was not."""
    line = _last(run, "hw", role="follower")
    if line is not None:
        line["old"] += 1_000
    return line is not None


def wait_for_stranger(run: Evidence) -> bool:
    line = _last(run, "hw", role="leader")
    if line is not None:
        line["isr"] = [*line["isr"], 9]
    return line is not None


def wait_for_fewer(run: Evidence) -> bool:
    for line in run.lines(STATE_CHANGES, ev="hw", role="leader", topic=ORDERS):
        if len(line["isr"]) > 1:
            line["isr"] = [line["broker"]]
            return True
    return False


def cut_committed(run: Evidence) -> bool:
    followers = [broker for broker in last_isr(run, 0) if broker != states(run, 0)[-1][1]["leader"]]
    end = replica(run, followers[0], 0)["log_end_offset"] if followers else 0
    if not end:
        return False
    epoch = states(run, 0)[-1][1]["leader_epoch"]
    say(
        run,
        followers[0],
        "truncate",
        topic=ORDERS,
        partition=0,
        log_end_offset=end,
        to=end - 1,
        high_watermark=end,
        leader_epoch=epoch,
        reason="epoch",
        asked_epoch=epoch,
        answer_epoch=epoch,
        answer_end_offset=end - 1,
        latest_epoch=epoch,
        local_epoch=epoch,
        local_end_offset=end,
    )
    return True


def join_early(run: Evidence) -> bool:
    for line in run.lines(STATE_CHANGES, ev="isr_propose", kind="expand"):
        if line["high_watermark"]:
            line["ends"] = [*line["ends"][:-1], line["high_watermark"] - 1]
            return True
    return False


def obey_old_controller(run: Evidence) -> bool:
    for requests in (list(run.lines(STATE_CHANGES, ev="ctl_recv", broker=broker)) for broker in (1, 2, 3)):
        if len(requests) > 1 and requests[-1]["inc"] == requests[-2]["inc"]:
            requests[-1]["controller_epoch"] = 0
            return True
    return False


def stop_late(run: Evidence) -> bool:
    for broker in (1, 2, 3):
        last = run.files[STATE_CHANGES][state_change_log(broker)][-1]
        requests = list(run.lines(STATE_CHANGES, ev="ctl_recv", api="LeaderAndIsr", broker=broker, inc=last["inc"]))
        if requests and requests[-1]["partitions"][0]["leader_epoch"] > 0:
            stopped = {
                **requests[-1]["partitions"][0],
                "leader_epoch": requests[-1]["partitions"][0]["leader_epoch"] - 1,
            }
            names = ("sender", "controller_epoch", "request_broker_epoch", "verdict")
            request = {name: requests[-1][name] for name in names}
            say(run, broker, "ctl_recv", api="StopReplica", partitions=[stopped], **request)
            return True
    return False


def obey_for_earlier_life(run: Evidence) -> bool:
    next(run.lines(STATE_CHANGES, ev="ctl_recv"))["request_broker_epoch"] -= 1
    return True


def cut_less(run: Evidence) -> bool:
    for line in run.lines(STATE_CHANGES, ev="truncate"):
        if line["to"] >= line["high_watermark"]:
            line["to"] += 1
            return True
    return False


def other_session(run: Evidence) -> bool:
    next(run.lines(STATE_CHANGES, ev="broker_registered"))["session"] = "0xdead"
    return True


def acknowledge_alone(run: Evidence) -> bool:
    line = _last(run, "produce_resp", acks=-1)
    if line is not None:
        line["isr_size"] = 1
    return line is not None


def append_alone(run: Evidence) -> bool:
    line = _last(run, "append", acks=-1)
    if line is not None:
        line["isr_size"] = 1
    return line is not None


def refuse_late(run: Evidence) -> bool:
    line = _last(run, "produce_resp", acks=-1)
    if line is None:
        return False
    again = {name: line[name] for name in ("topic", "partition", "acks", "isr_size", "high_watermark", "leader_epoch")}
    return say(run, line["broker"], "produce_resp", **again, base_offset=-1, last_offset=-1, error=20)


def lead_on_without_disk(run: Evidence) -> bool:
    line = _last(run, "produce_resp", acks=-1)
    if line is None:
        return False
    names = ("topic", "partition", "acks", "isr_size", "high_watermark", "leader_epoch")
    refusal = {**{name: line[name] for name in names}, "base_offset": -1, "last_offset": -1, "error": 56}
    say(run, line["broker"], "produce_resp", **refusal)
    last = run.files[STATE_CHANGES][state_change_log(line["broker"])][-1]["mono"]
    return say(run, line["broker"], "produce_resp", **refusal, mono=last + 10_000 * MS)


def refuse_retry(run: Evidence) -> bool:
    written = run.lines(STATE_CHANGES, ev="append", role="leader", topic=ORDERS)
    line = next((line for line in written if line["producer_id"] >= 0), None)
    if line is None:
        return False
    names = ("topic", "partition", "leader_epoch", "producer_id", "producer_epoch", "base_sequence")
    of_producer = {name: line[name] for name in ("broker", "partition", "producer_id")}
    later = sum(1 for _ in run.lines(STATE_CHANGES, ev="append", topic=ORDERS, **of_producer)) - 1
    return later < 5 and say(
        run,
        line["broker"],
        "batch_refused",
        **{name: line[name] for name in names},
        last_sequence=line["base_sequence"] + line["last_offset"] - line["base_offset"],
        log_start_offset=0,
        error=45,
    )


def _last_update(run: Evidence) -> Line:
    return max(run.lines(STATE_CHANGES, ev="ctl_recv", api="UpdateMetadata"), key=lambda line: line["mono"])


def forget_live_broker(run: Evidence) -> bool:
    _last_update(run)["live_brokers"].pop()
    return True


def forget_partition(run: Evidence) -> bool:
    _last_update(run)["partitions"].pop()
    return True


def answer_wrongly(run: Evidence) -> bool:
    acted = {(line["partition"], line["asked_epoch"]) for line in run.lines(STATE_CHANGES, ev="truncate", topic=ORDERS)}
    for line in run.lines(STATE_CHANGES, ev="ofle", topic=ORDERS):
        if (line["partition"], line["asked_epoch"]) not in acted:
            line["end_offset"] += 1
            return True
    return False


def answer_in_another_epoch(run: Evidence) -> bool:
    for line in run.lines(STATE_CHANGES, ev="ofle", topic=ORDERS):
        line["leader_epoch"] += 1
        return True
    return False


def act_unanswered(run: Evidence) -> bool:
    cut = next(run.lines(STATE_CHANGES, ev="truncate", topic=ORDERS), None)
    if cut is None:
        return False
    names = ("topic", "partition", "asked_epoch")
    question = {name: cut[name] for name in names} | {"sender": cut["broker"]}
    for line in run.lines(STATE_CHANGES, ev="ofle", current_leader_epoch=cut["leader_epoch"], **question):
        line["sender"] = 9
    return True


def acknowledge_early(run: Evidence) -> bool:
    line = _last(run, "produce_resp", acks=-1)
    if line is not None:
        line["high_watermark"] = line["last_offset"]
    return line is not None


def choose_absent(run: Evidence) -> bool:
    line = _last(run, "election")
    if line is None or line["result"] is None:
        return False
    line["online"] = [broker for broker in line["online"] if broker != line["result"]["leader"]]
    return True


def take_for_alive(run: Evidence) -> bool:
    line = _last(run, "election")
    if line is None or line["result"] is None:
        return False
    line["online"].append(9)
    return True


def leave_out(run: Evidence) -> bool:
    for line in run.lines(STATE_CHANGES, ev="election", topic=ORDERS):
        leader = line["result"] and line["result"]["leader"]
        if line["strategy"] != "controlled_shutdown" and leader and _stays(run, leader):
            line["shutting_down"] = [leader]
            return True
    return False


def _stays(run: Evidence, broker: int) -> bool:
    """Return whether a broker has one life, and is registered in the end."""
    lives = {line["inc"] for line in run.lines(STATE_CHANGES, broker=broker)}
    return len(lives) == 1 and f"/brokers/ids/{broker}" in run.versions


def elect_late(run: Evidence) -> bool:
    """ZooKeeper holds the new leader long after the controller was done with the death of the old one."""
    for partition in (0, 1):
        for (_, state), (line, following) in pairwise(states(run, partition)):
            gone = state["leader"] not in following["isr"] and state["leader"] != -1
            if gone and following["leader"] in state["isr"]:
                line["time_ms"] += 5_000
                return True
    return False


def keep_high_watermark(run: Evidence) -> bool:
    """A follower never hears of the high watermark in the epoch that is the last one."""
    for marked in run.lines(STATE_CHANGES, ev="become_follower", topic=ORDERS):
        of_follower = {name: marked[name] for name in ("broker", "topic", "partition", "leader_epoch")}
        of_leader = of_follower | {"broker": marked["leader"]}
        copied = list(run.lines(STATE_CHANGES, ev="append", role="follower", **of_follower))
        raised = list(run.lines(STATE_CHANGES, ev="hw", role="leader", **of_leader))
        if not copied or not any(line["mono"] + 1_000 * MS < copied[-1]["mono"] for line in raised):
            continue
        for line in run.lines(STATE_CHANGES, ev="hw", role="follower", **of_follower):
            line["new"] = line["old"] = marked["high_watermark"]
        if marked["high_watermark"] >= min(raised[0]["new"], copied[-1]["last_offset"] + 1):
            continue
        later = copied[-1]["mono"] + 2_000 * MS
        return say(run, marked["broker"], "hw_checkpoint", count=1, mono=later)
    return False


def keep_log_start(run: Evidence) -> bool:
    """A leader has deleted a record, and its follower does not hear of it."""
    for claim in run.lines(STATE_CHANGES, ev="become_leader", topic=ORDERS):
        epoch = {name: claim[name] for name in ("topic", "partition", "leader_epoch")}
        of_epoch = list(run.lines(STATE_CHANGES, ev="append", role="follower", **epoch))
        for copied in (line for line in reversed(of_epoch) if line["mono"] > claim["mono"] + 20 * MS):
            claim["log_start_offset"] = 1
            return say(run, copied["broker"], "hw_checkpoint", count=1, mono=copied["mono"] + 2_000 * MS)
    return False


def _lives(run: Evidence, broker: int) -> list[list[Line]]:
    """Return the lines of each life of a broker."""
    lines = run.files[STATE_CHANGES].get(state_change_log(broker), [])
    return [[line for line in lines if line["inc"] == life] for life in dict.fromkeys(line["inc"] for line in lines)]


def _load(run: Evidence, broker: int, **found: object) -> bool:
    """Have a broker say that it has loaded a log that starts at 0 and ends at 5."""
    log = {"topic": ORDERS, "partition": 0, "log_start_offset": 0, "log_end_offset": 5, "high_watermark": 0}
    return say(run, broker, "recovery", **log | {"clean": True, "recovery_point": 0, "truncated_bytes": 0} | found)


def _restarted(run: Evidence, *, closed: bool) -> tuple[int, list[Line]] | None:
    """Return a broker that has started again, and its life before, which closed its logs or did not."""
    for broker in (1, 2, 3):
        lives = _lives(run, broker)
        if len(lives) > 1 and closed == any(line["ev"] == "logs_close" for line in lives[-2]):
            return broker, lives[-2]
    return None


def lead_on_in_quorum(run: Evidence) -> bool:
    """Two brokers were elected by a quorum, the first of which logs nothing more until a minute later."""
    last = max(line["mono"] for line in run.lines(STATE_CHANGES))
    for broker, epoch, at_s in ((1, 1001, 100), (2, 1002, 101)):
        say(
            run,
            broker,
            "controller_elected",
            controller_epoch=epoch,
            epoch_zk_version=None,
            mono=last + 1_000 * at_s * MS,
        )
    return say(run, 1, "controller_resigned", controller_epoch=1001, reason="another epoch", mono=last + 160_000 * MS)


def trust_after_crash(run: Evidence) -> bool:
    restarted = _restarted(run, closed=False)
    return restarted is not None and _load(run, restarted[0])


def start_earlier(run: Evidence) -> bool:
    """A broker had deleted records, and has them again after a clean stop."""
    restarted = _restarted(run, closed=True)
    if restarted is None:
        return False
    broker, life = restarted
    roles = _roles(life)
    for line in roles:
        line["log_start_offset"] = 1
    return bool(roles) and _load(run, broker)


def start_later(run: Evidence) -> bool:
    """A broker lacks the first record of a log after a clean stop, although nothing has deleted it."""
    restarted = _restarted(run, closed=True)
    if restarted is None:
        return False
    broker, life = restarted
    return bool(_roles(life)) and _load(run, broker, log_start_offset=1)


def _roles(life: list[Line]) -> list[Line]:
    """Return the lines in which a broker takes a role in the partition of `_load`."""
    of_roles = (line for line in life if line["ev"] in ("become_leader", "become_follower"))
    return [line for line in of_roles if (line["topic"], line["partition"]) == (ORDERS, 0)]


def sync_less(run: Evidence) -> bool:
    return _load(run, 1, clean=False, recovery_point=6)


def delete_early(run: Evidence) -> bool:
    segment = {"topic": ORDERS, "partition": 0, "base_offset": 0, "end_offset": 0, "log_start_offset": 0}
    sizes = {"high_watermark": 0, "segment_bytes": 10, "log_bytes": 20, "retention_bytes": -1}
    times = {"youngest_ms": 1_000, "now_ms": 1_500, "retention_ms": 1_000}
    return say(run, 1, "segment_delete", reason="age", **segment, **sizes, **times)


def act_on_other_configuration(run: Evidence) -> bool:
    line = _last(run, "config_in_force")
    if line is not None:
        line["properties"] = ["min.insync.replicas=7"]
    return line is not None


def serve_uncommitted(run: Evidence) -> bool:
    line = _last(run, "fetch_resp")
    if line is not None:
        line["high_watermark"] = line["last_offset"]
    return line is not None


def serve_other_epoch(run: Evidence) -> bool:
    line = _last(run, "fetch_resp")
    if line is not None:
        line["current_leader_epoch"] = line["leader_epoch"] + 1
    return line is not None


def lose_line(run: Evidence) -> bool:
    records = {(line["partition"], line["offset"]) for line in acknowledged(run)}
    line = _last(run, "hw", role="follower")
    run.remove(STATE_CHANGES, [line] if line and records else [])
    return line is not None and bool(records)


def stay_away(run: Evidence) -> bool:
    return _hide(run, Sign.REGISTERED)


def fail_unforeseen(run: Evidence) -> bool:
    error = {"error": "KeyError: 'orders'", "at": "replicas/fetcher.py:120 _round"}
    return say(run, 1, "unexpected_error", operation="fetcher.round failed leader=2", **error)


def take_nothing(run: Evidence) -> bool:
    return _hide(run, Sign.PRODUCE)


def _hide(run: Evidence, sign: Sign) -> bool:
    line = next(run.lines(LIVENESS, sign=sign.value), None)
    if line is not None:
        line |= {"shown": False, "since_ns": line["healed_ns"], "detail": "it is not", "hindrance": ""}
    return line is not None
