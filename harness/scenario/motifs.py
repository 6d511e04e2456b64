"""Several faults that a mix draws whole, as one by one they rarely meet: the catalogue of `mix.motifs`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SAME = "same"
"""As target: the broker that the seed draws for the whole motif."""
LEADER = "leader"
"""As target: the leader of the first partition of a topic that the seed draws."""
FOLLOWERS = "followers"
"""As target: the followers of that partition."""
CONTROLLER = "controller"


@dataclass(frozen=True, slots=True, kw_only=True)
class MotifStep:
    """One fault of a motif."""

    kind: str
    delay_s: float = 0.0
    """After the motif begins."""
    duration_s: float = 0.0
    until_end: bool = False
    """Whether it is healed no sooner than the load allows."""
    target: str = SAME
    parameters: Mapping[str, Any] = field(default_factory=dict)
    after: str = ""
    """A moment that it waits for; empty for none."""
    offset_s: float = 0.0
    """How long after it."""
    within_s: float = 3.0
    """How long it waits for that moment at most."""
    overlaps: bool = False
    """Whether it is injected even while an earlier step of the motif is still in force on its target, if its moment
    came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Motif:
    """Faults that begin together or one after the other."""

    about: str
    steps: tuple[MotifStep, ...]

    @property
    def needs_followers(self) -> bool:
        """Whether a partition with one replica will not do."""
        return any(step.target == FOLLOWERS or step.kind == "preferred-election" for step in self.steps)


MOTIFS: Mapping[str, Motif] = {
    "stop-start-kill": Motif(
        about="a clean stop, a start, and a kill before anything is checkpointed again",
        steps=(
            MotifStep(kind="controlled-shutdown"),
            MotifStep(
                kind="kill",
                delay_s=0.01,
                duration_s=1,
                after="stopped-broker-started",
                offset_s=0.05,
                within_s=6,
                overlaps=True,
            ),
        ),
    ),
    "start-kill": Motif(
        about="a kill before the first checkpoint",
        steps=(
            MotifStep(kind="kill", duration_s=1, parameters={"end_session": True}),
            MotifStep(kind="kill", delay_s=0.5, duration_s=1, after="broker-started", offset_s=0.3, overlaps=True),
        ),
    ),
    "expire-stop": Motif(
        about="a session that expires, and a controlled shutdown while the broker registers again",
        steps=(
            MotifStep(kind="expire-session"),
            MotifStep(kind="controlled-shutdown", delay_s=0.3, parameters={"hands_over": False}),
        ),
    ),
    "leader-and-controller": Motif(
        about="a leader and the controller die together",
        steps=(
            MotifStep(kind="kill", duration_s=2, target=LEADER),
            MotifStep(kind="kill", duration_s=2, target=CONTROLLER),
        ),
    ),
    "stop-and-controller": Motif(
        about="a broker stops cleanly while the controller that would move its leaders dies",
        steps=(
            MotifStep(kind="kill", duration_s=2, target=CONTROLLER),
            MotifStep(kind="controlled-shutdown", delay_s=0.1, duration_s=1, parameters={"hands_over": False}),
        ),
    ),
    "two-elections": Motif(
        about="a leader dies, and the controller that has elected another one is deposed within a round trip",
        steps=(
            MotifStep(kind="kill", duration_s=2, target=LEADER),
            MotifStep(kind="move-controller", target=CONTROLLER, after="leader-elected"),
        ),
    ),
    "reassign-and-move": Motif(
        about="the controller is deposed while a replica is made for a reassignment",
        steps=(
            MotifStep(kind="reassign", duration_s=2, target=LEADER),
            MotifStep(kind="move-controller", target=CONTROLLER, after="new-replica", offset_s=0.02),
        ),
    ),
    "delete-and-move": Motif(
        about="the controller is deposed while a topic is deleted",
        steps=(
            MotifStep(kind="delete-topic", target="majority"),
            MotifStep(kind="move-controller", target=CONTROLLER, after="deletion", offset_s=0.02),
        ),
    ),
    "cut-at-isr-change": Motif(
        about="a leader loses ZooKeeper in the instant in which it writes a smaller ISR",
        steps=(
            MotifStep(kind="pause", duration_s=7, target=FOLLOWERS),
            MotifStep(
                kind="isolate",
                duration_s=2,
                target=LEADER,
                parameters={"sides": ["zookeeper"]},
                after="isr-shrinks",
                within_s=7,
            ),
        ),
    ),
    "expire-at-isr-return": Motif(
        about="a leader's session ends in the instant in which it writes a larger ISR, and the follower dies again",
        steps=(
            MotifStep(kind="kill", duration_s=0.2, target=FOLLOWERS, parameters={"end_session": True}),
            MotifStep(kind="expire-session", delay_s=0.2, target=LEADER, after="isr-expands"),
            MotifStep(
                kind="kill",
                delay_s=0.2,
                duration_s=2,
                target=FOLLOWERS,
                parameters={"end_session": True},
                after="isr-expands",
                offset_s=0.02,
            ),
        ),
    ),
    "lead-follow-lead": Motif(
        about="a broker leads, follows, and leads again",
        steps=(
            MotifStep(kind="preferred-election", target=LEADER, duration_s=0.5),
            MotifStep(kind="preferred-election", delay_s=1, target=LEADER, duration_s=0.5),
        ),
    ),
    "expire-again": Motif(
        about="a new session ends, too, while its broker is still registering",
        steps=(MotifStep(kind="expire-session", parameters={"times": 3}),),
    ),
    "leave-and-move": Motif(
        about="the controller is deposed while it moves the leaders of a broker that stops cleanly",
        steps=(
            MotifStep(kind="controlled-shutdown", duration_s=1, parameters={"hands_over": False}),
            MotifStep(kind="move-controller", target=CONTROLLER, after="controlled-shutdown", offset_s=0.01),
        ),
    ),
    "load-and-delete": Motif(
        about="a topic is deleted while a coordinator loads",
        steps=(
            MotifStep(kind="kill", duration_s=3, parameters={"end_session": True}),
            MotifStep(kind="delete-topic", target="majority", after="coordinator-loads"),
        ),
    ),
    "load-and-expire": Motif(
        about="the controller's session ends while a coordinator loads",
        steps=(
            MotifStep(kind="kill", duration_s=2, parameters={"end_session": True}),
            MotifStep(kind="expire-session", target=CONTROLLER, after="coordinator-loads", offset_s=0.05),
        ),
    ),
    "decide-and-restart": Motif(
        about="the leader of a partition restarts after a transaction is decided, before its marker is there",
        steps=(MotifStep(kind="bounce", target=LEADER, after="transaction-decided", within_s=6),),
    ),
    "rebalance-and-restart": Motif(
        about="two brokers restart one after the other while a group rebalances",
        steps=(
            MotifStep(kind="bounce", after="group-rebalances", within_s=6),
            MotifStep(kind="bounce", delay_s=0.5, target=LEADER, after="group-rebalances", offset_s=0.05, within_s=6),
        ),
    ),
    "stays-down": Motif(
        about="a broker that nothing heals until the load has ended",
        steps=(MotifStep(kind="kill", until_end=True),),
    ),
    "last-member-restarts": Motif(
        about="all followers die, and then the only member of the ISR restarts",
        steps=(
            MotifStep(kind="kill", duration_s=4, target=FOLLOWERS, parameters={"end_session": True}),
            MotifStep(kind="bounce", delay_s=1.5, target=LEADER),
        ),
    ),
    "last-member-loses-disk": Motif(
        about="all followers die, and then the disk of the only member of the ISR fails for a while",
        steps=(
            MotifStep(kind="kill", duration_s=5, target=FOLLOWERS, parameters={"end_session": True}),
            MotifStep(kind="disk-error", delay_s=1.2, duration_s=2.5, target=LEADER),
        ),
    ),
    "busy-controller-expires": Motif(
        about="ZooKeeper answers the controller late, and its session ends while requests wait",
        steps=(
            MotifStep(
                kind="delay", duration_s=4, target=CONTROLLER, parameters={"sides": ["zookeeper"], "extra_ms": 800}
            ),
            MotifStep(kind="reassign", delay_s=0.1, duration_s=1, target=LEADER),
            MotifStep(kind="controlled-shutdown", delay_s=0.2, duration_s=1, parameters={"hands_over": False}),
            MotifStep(kind="expire-session", delay_s=1.5, target=CONTROLLER),
        ),
    ),
    "creation-unanswered": Motif(
        about="ZooKeeper's answer to a write of the controller is lost while a topic is created",
        steps=(
            MotifStep(
                kind="lose-zookeeper-reply",
                target=CONTROLLER,
                parameters={"write": "next", "answered": 5, "wait_s": 4},
            ),
            MotifStep(kind="delete-topic", delay_s=0.1, target="majority"),
        ),
    ),
}
