"""What is done to both clusters? Each situation has a topic of its own; parts are explained in `stage.PARTS`."""

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.side_by_side.stage import Stage


@dataclass(frozen=True, slots=True)
class Situation:
    """One disturbance, from a topic's creation to the end of all that follows."""

    name: str
    act: Callable[[Stage], None]
    controller: str
    """The part that the controller plays when it begins."""


SITUATIONS: list[Situation] = []


def situation(name: str, controller: str = "D") -> Callable[[Callable[[Stage], None]], Callable[[Stage], None]]:
    """Add a function to the situations."""

    def add(act: Callable[[Stage], None]) -> Callable[[Stage], None]:
        SITUATIONS.append(Situation(name, act, controller))
        return act

    return add


def _killed(stage: Stage, part: str, isr: str) -> None:
    stage.kill(part)
    stage.until_isr(isr)
    stage.start(part)
    stage.until_isr("ABC")


def _stopped(stage: Stage, part: str, isr: str) -> None:
    stage.stop(part)
    stage.until_isr(isr)
    stage.start(part)
    stage.until_isr("ABC")


@situation("leader killed, started again")
def leader_killed(stage: Stage) -> None:
    stage.create()
    _killed(stage, "A", "BC")


@situation("follower killed, started again")
def follower_killed(stage: Stage) -> None:
    stage.create()
    _killed(stage, "B", "AC")


@situation("controller killed, no replica on it")
def controller_killed(stage: Stage) -> None:
    stage.create()
    stage.kill("D")
    stage.until_gone("D")
    stage.start("D")


@situation("leader and controller in one killed, started again", controller="A")
def leading_controller_killed(stage: Stage) -> None:
    stage.create()
    _killed(stage, "A", "BC")


@situation("leader shut down, started again")
def leader_stopped(stage: Stage) -> None:
    stage.create()
    _stopped(stage, "A", "BC")


@situation("follower shut down, started again")
def follower_stopped(stage: Stage) -> None:
    stage.create()
    _stopped(stage, "C", "AB")


@situation("leader and controller in one shut down, started again", controller="A")
def leading_controller_stopped(stage: Stage) -> None:
    stage.create()
    _stopped(stage, "A", "BC")


@situation("leader paused beyond its session")
def leader_paused_long(stage: Stage) -> None:
    stage.create()
    stage.pause("A")
    stage.until_isr("BC")
    stage.resume("A")
    stage.until_isr("ABC")


@situation("controller paused beyond its session", controller="D")
def controller_paused_long(stage: Stage) -> None:
    stage.create()
    stage.pause("D")
    stage.until("another controller", lambda seen: seen.controller.broker_id not in (-1, stage.ids["D"]))
    stage.until_gone("D")
    stage.resume("D")
    stage.until("D registered", lambda seen: stage.ids["D"] in seen.registered)


@situation("leader and controller in one paused beyond its session", controller="A")
def leading_controller_paused(stage: Stage) -> None:
    stage.create()
    stage.pause("A")
    stage.until_isr("BC")
    stage.resume("A")
    stage.until_isr("ABC")


@situation("follower lags behind and catches up")
def follower_lags(stage: Stage) -> None:
    stage.create()
    stage.pause("C")
    stage.write()
    stage.until_isr("AB")
    stage.resume("C")
    stage.until_isr("ABC")


@situation("leader's session expired")
def leader_expired(stage: Stage) -> None:
    stage.create()
    stage.expire("A")
    stage.until_isr("ABC")


@situation("controller's session expired")
def controller_expired(stage: Stage) -> None:
    stage.create()
    stage.expire("D")
    stage.until(
        "D registered, a controller", lambda seen: stage.ids["D"] in seen.registered and seen.controller.broker_id >= 0
    )


@situation("/controller deleted")
def controller_znode_deleted(stage: Stage) -> None:
    stage.create()
    stage.delete_znode("/controller")
    stage.until("the next controller", lambda seen: seen.controller.controller_epoch > stage.first.controller_epoch)


@situation("all replicas down one by one, the last leader comes back first")
def all_down_last_first(stage: Stage) -> None:
    stage.create()
    _all_down(stage)
    stage.start("C")
    stage.until_isr("C")
    stage.start("A")
    stage.start("B")
    stage.until_isr("ABC")


@situation("all replicas down, another comes back first, which may not lead")
def all_down_wait(stage: Stage) -> None:
    stage.create()
    _all_down(stage)
    stage.start("A")
    stage.until_leader(None)
    stage.start("C")
    stage.until_isr("AC")
    stage.start("B")
    stage.until_isr("ABC")


@situation("all replicas down, another comes back first, which may lead")
def all_down_unclean(stage: Stage) -> None:
    stage.create(**{"unclean.leader.election.enable": "true"})
    _all_down(stage)
    stage.start("A")
    stage.until_isr("A")
    stage.start("C")
    stage.start("B")
    stage.until_isr("ABC")


def _all_down(stage: Stage) -> None:
    """A, B and C die in this order, each when the cluster has taken notice of the one before."""
    stage.kill("A")
    stage.until_isr("BC")
    stage.kill("B")
    stage.until_isr("C")
    stage.kill("C")
    stage.until_leader(None)


@situation("offline partition, unclean election allowed meanwhile")
def unclean_toggled(stage: Stage) -> None:
    stage.create()
    _all_down(stage)
    stage.start("A")
    stage.until_leader(None)
    stage.configure(**{"unclean.leader.election.enable": "true"})
    stage.until_isr("A")
    stage.start("B")
    stage.start("C")
    stage.until_isr("ABC")


@situation("offline partition, unclean election asked for")
def unclean_requested(stage: Stage) -> None:
    stage.create()
    _all_down(stage)
    stage.start("A")
    stage.until_leader(None)
    stage.elect(1)
    stage.until_isr("A")
    stage.start("B")
    stage.start("C")
    stage.until_isr("ABC")


@situation("preferred election asked for")
def preferred_requested(stage: Stage) -> None:
    stage.create()
    _killed(stage, "A", "BC")
    stage.elect(0)
    stage.until_leader("A")


@situation("one replica reassigned, not the leader's")
def follower_reassigned(stage: Stage) -> None:
    stage.create()
    stage.reassign("ABD")
    stage.until_isr("ABD")


@situation("the leader's replica reassigned")
def leader_reassigned(stage: Stage) -> None:
    stage.create()
    stage.reassign("DBC")
    stage.until_isr("BCD")


@situation("a replica more")
def replica_more(stage: Stage) -> None:
    stage.create("AB")
    stage.reassign("ABC")
    stage.until_isr("ABC")


@situation("a replica less, the leader's")
def replica_less(stage: Stage) -> None:
    stage.create()
    stage.reassign("BC")
    stage.until_isr("BC")


@situation("replicas in another order")
def reordered(stage: Stage) -> None:
    stage.create()
    stage.reassign("CBA")


@situation("reassignment to a broker that is down, cancelled", controller="A")
def reassignment_cancelled(stage: Stage) -> None:
    stage.create()
    stage.kill("D")
    stage.until_gone("D")
    stage.reassign("ABD")
    stage.until_quiet()
    stage.reassign(None)
    stage.until_quiet()
    stage.start("D")


@situation("reassignment to a paused broker, cancelled", controller="A")
def stalled_reassignment_cancelled(stage: Stage) -> None:
    stage.create()
    stage.pause("D")
    stage.reassign("ABD")
    stage.reassign(None)
    stage.resume("D")


@situation("topic deleted")
def deleted(stage: Stage) -> None:
    stage.create()
    stage.delete()
    stage.until_deleted()


@situation("topic deleted while a replica is down")
def deleted_with_one_down(stage: Stage) -> None:
    stage.create()
    stage.kill("B")
    stage.until_isr("AC")
    stage.delete()
    stage.until_quiet()
    stage.start("B")
    stage.until_deleted()


@situation("partitions added")
def partitions_added(stage: Stage) -> None:
    stage.create()
    stage.admin.create_partitions({stage.topic: {"count": 2, "assignments": [[stage.ids[part] for part in "BCA"]]}})
    stage.until("a second partition", lambda seen: sum(each.topic == stage.topic for each in seen.partitions) == 2)


@situation("configuration of the topic changed")
def configured(stage: Stage) -> None:
    stage.create()
    stage.configure(**{"retention.ms": "3600000"})
