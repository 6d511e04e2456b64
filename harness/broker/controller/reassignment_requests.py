"""Checks a requested reassignment, and builds the new assignment. Pure."""

from dataclasses import dataclass

from harness.broker.controller.assignment import Assignment
from harness.broker.controller.context import ControllerContext
from harness.broker.wire.error_codes import ErrorCode
from harness.values import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The replicas requested for one partition."""

    target: tuple[int, ...] | None
    """The requested replicas; None cancels a running reassignment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reassigned:
    """The result of a request."""

    error: ErrorCode = ErrorCode.NONE
    message: str = ""


DONE = Reassigned()


def wanted_assignment(
    context: ControllerContext, partition: TopicPartition, wish: Wish, *, check_replicas: bool
) -> Assignment | Reassigned:
    """Return the assignment on the way to the target, or why there is none (`maybeBuildReassignment`).

    With `check_replicas` the list must name every broker once and new ones must live; a list in the legacy znode is
    taken as it is.
    """
    current = context.assignment(partition)
    if wish.target is None:
        if current.is_reassigned:
            return current.reassigned_to(current.origin)
        return Reassigned(error=ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    problem = _problem(context, current, wish.target) if check_replicas else ""
    if problem:
        return Reassigned(error=ErrorCode.INVALID_REPLICA_ASSIGNMENT, message=problem)
    return current.reassigned_to(wish.target)


def _problem(context: ControllerContext, current: Assignment, target: tuple[int, ...]) -> str:
    if not target:
        return "Empty replica list specified in partition reassignment."
    if len(set(target)) < len(target):
        return f"Duplicate replica ids in partition reassignment replica list: {list(target)}"
    if min(target) < 0:
        return f"Invalid broker id in replica list: {list(target)}"
    adding = current.reassigned_to(target).adding
    dead = [replica for replica in adding if replica not in context.live or replica in context.shutting_down]
    if dead:
        return f"Replica assignment has brokers that are not alive. Replica list: {list(adding)}"
    return ""
