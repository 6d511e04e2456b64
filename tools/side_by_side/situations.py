"""What is done to both clusters? Each situation has a topic of its own; parts are explained in `stage.PARTS`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tools.side_by_side.stage import Stage


@dataclass(frozen=True, slots=True)
class Situation:
    """One disturbance, from a topic's creation to the end of all that follows."""

    name: str
    steps: str | Callable[[Stage], None]
    """A method of the stage and its argument each, such as `kill A; until_isr BC`; or a function, where that is not
    enough."""
    controller: str = "D"
    """The part that the controller plays when it begins."""
    replicas: str = "ABC"
    """Of the topic."""
    config: Mapping[str, str] = field(default_factory=dict)
    """Of the topic."""

    def act(self, stage: Stage) -> None:
        """Create the topic, and disturb it."""
        stage.create(self.replicas, **self.config)
        if not isinstance(self.steps, str):
            self.steps(stage)
            return
        for step in self.steps.split("; "):
            method, *arguments = step.split(" ")
            getattr(stage, method)(*arguments)


def _controller_paused(stage: Stage) -> None:
    stage.pause("D")
    stage.until("another controller", lambda seen: seen.controller.broker_id not in (-1, stage.ids["D"]))
    stage.until_gone("D")
    stage.resume("D")
    stage.until("D registered", lambda seen: stage.ids["D"] in seen.registered)


def _controller_expired(stage: Stage) -> None:
    stage.expire("D")
    stage.until(
        "D registered, a controller", lambda seen: stage.ids["D"] in seen.registered and seen.controller.broker_id >= 0
    )


def _controller_znode_deleted(stage: Stage) -> None:
    stage.delete_znode("/controller")
    stage.until("the next controller", lambda seen: seen.controller.controller_epoch > stage.first.controller_epoch)


def _partitions_added(stage: Stage) -> None:
    stage.admin.create_partitions({stage.topic: {"count": 2, "assignments": [[stage.ids[part] for part in "BCA"]]}})
    stage.until("a second partition", lambda seen: sum(each.topic == stage.topic for each in seen.partitions) == 2)


_KILLED = "kill A; until_isr BC; start A; until_isr ABC"
_STOPPED = "stop A; until_isr BC; start A; until_isr ABC"
_PAUSED = "pause A; until_isr BC; resume A; until_isr ABC"
_ALL_DOWN = "kill A; until_isr BC; kill B; until_isr C; kill C; until_leader"
"""A, B and C die in this order, each when the cluster has taken notice of the one before."""
_A_IS_BACK = f"{_ALL_DOWN}; start A; until_leader"
_UNCLEAN = {"unclean.leader.election.enable": "true"}

SITUATIONS = (
    Situation("leader killed, started again", _KILLED),
    Situation("follower killed, started again", "kill B; until_isr AC; start B; until_isr ABC"),
    Situation("controller killed, no replica on it", "kill D; until_gone D; start D"),
    Situation("leader and controller in one killed, started again", _KILLED, controller="A"),
    Situation("leader shut down, started again", _STOPPED),
    Situation("follower shut down, started again", "stop C; until_isr AB; start C; until_isr ABC"),
    Situation("leader and controller in one shut down, started again", _STOPPED, controller="A"),
    Situation("leader paused beyond its session", _PAUSED),
    Situation("controller paused beyond its session", _controller_paused),
    Situation("leader and controller in one paused beyond its session", _PAUSED, controller="A"),
    Situation("follower lags behind and catches up", "pause C; write; until_isr AB; resume C; until_isr ABC"),
    Situation("leader's session expired", "expire A; until_isr ABC"),
    Situation("controller's session expired", _controller_expired),
    Situation("/controller deleted", _controller_znode_deleted),
    Situation(
        "all replicas down one by one, the last leader comes back first",
        f"{_ALL_DOWN}; start C; until_isr C; start A; start B; until_isr ABC",
    ),
    Situation(
        "all replicas down, another comes back first, which may not lead",
        f"{_A_IS_BACK}; start C; until_isr AC; start B; until_isr ABC",
    ),
    Situation(
        "all replicas down, another comes back first, which may lead",
        f"{_ALL_DOWN}; start A; until_isr A; start C; start B; until_isr ABC",
        config=_UNCLEAN,
    ),
    Situation(
        "offline partition, unclean election allowed meanwhile",
        f"{_A_IS_BACK}; configure unclean.leader.election.enable=true; until_isr A; start B; start C; until_isr ABC",
    ),
    Situation(
        "offline partition, unclean election asked for",
        f"{_A_IS_BACK}; elect unclean; until_isr A; start B; start C; until_isr ABC",
    ),
    Situation("preferred election asked for", f"{_KILLED}; elect preferred; until_leader A"),
    Situation("one replica reassigned, not the leader's", "reassign ABD; until_isr ABD"),
    Situation("the leader's replica reassigned", "reassign DBC; until_isr BCD"),
    Situation("a replica more", "reassign ABC; until_isr ABC", replicas="AB"),
    Situation("a replica less, the leader's", "reassign BC; until_isr BC"),
    Situation("replicas in another order", "reassign CBA"),
    Situation(
        "reassignment to a broker that is down, cancelled",
        "kill D; until_gone D; reassign ABD; until_quiet; reassign; until_quiet; start D",
        controller="A",
    ),
    Situation(
        "reassignment to a paused broker, cancelled", "pause D; reassign ABD; reassign; resume D", controller="A"
    ),
    Situation("topic deleted", "delete; until_deleted"),
    Situation(
        "topic deleted while a replica is down",
        "kill B; until_isr AC; delete; until_quiet; start B; until_deleted",
    ),
    Situation("partitions added", _partitions_added),
    Situation("configuration of the topic changed", "configure retention.ms=3600000"),
)
