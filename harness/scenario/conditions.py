"""What a step waits for: conditions in a few words, with the names of roles and of messages."""

import re
from dataclasses import dataclass

from harness.events import KINDS, GroupStateChange, TransactionStateChange

CHECKPOINT = "checkpoint"
ALLOWED = (
    "`A leads orders-0`, `ISR of orders-0 is A, B`, `leader epoch of orders-0 is 3` (or more), `group g is Stable`,"
    " `transaction t is Ongoing`, `A logs become_leader of orders-0`, `A logs zk_session`, `M is on its way`,"
    " `2 of M are held`, or `checkpoint`"
)
_PARTITION = r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>\d{1,9})"
_LEADS = re.compile(rf"(?P<roles>\w+) leads {_PARTITION}")
_ISR = re.compile(rf"ISR of {_PARTITION} is (?P<roles>\w+(\s*,\s*\w+)*)")
_EPOCH = re.compile(rf"leader epoch of {_PARTITION} is (?P<epoch>\d{{1,9}})")
_GROUP = re.compile(r"group (?P<group>[^ ]+) is (?P<state>\w+)")
_TRANSACTION = re.compile(r"transaction (?P<id>[^ ]+) is (?P<state>\w+)")
_LOGS = re.compile(rf"(?P<roles>\w+) logs (?P<event>\w+)( of {_PARTITION})?")
_MESSAGES = re.compile(r"(?P<messages>[A-Z]\w*) is on its way|(?P<count>\d{1,4}) of (?P<many>[A-Z]\w*) are held")


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One condition; all empty: high watermarks are checkpointed."""

    topic: str = ""
    partition: int = -1
    leader: str = ""
    """Role that leads the partition."""
    isr: tuple[str, ...] = ()
    """Roles, in any order, that are its ISR."""
    leader_epoch: int | None = None
    """Of the partition, at least."""
    group: str = ""
    transactional_id: str = ""
    state: str = ""
    """Of the group or the transaction, as its coordinator logs it."""
    event: str = ""
    """Kind of a state change, of the partition if there is one …"""
    broker: str = ""
    """… and the role that logs it after the last step that did something."""
    messages: str = ""
    """Name of messages that a step intercepts, …"""
    count: int = 0
    """… of which so many are caught at least."""

    @property
    def roles(self) -> tuple[str, ...]:
        """Those that it names."""
        return tuple(filter(None, (self.leader, self.broker, *self.isr)))

    @property
    def logged(self) -> str:
        """The kind of line in brokers' logs that shows whether it holds; empty where other evidence does."""
        if self.group:
            return GroupStateChange.ev
        return TransactionStateChange.ev if self.transactional_id else self.event


def roles_in(text: str) -> tuple[str, ...]:
    """Return the names in a list with commas."""
    return tuple(name.strip() for name in text.split(","))


def parse_condition(text: str) -> Condition:
    """Return what the words mean.

    Raises:
        ValueError: they are none of the allowed forms.
    """
    text = " ".join(text.split())
    if text == CHECKPOINT:
        return Condition()
    if match := _LEADS.fullmatch(text):
        return Condition(topic=match["topic"], partition=int(match["partition"]), leader=match["roles"])
    if match := _ISR.fullmatch(text):
        return Condition(topic=match["topic"], partition=int(match["partition"]), isr=roles_in(match["roles"]))
    if match := _EPOCH.fullmatch(text):
        return Condition(topic=match["topic"], partition=int(match["partition"]), leader_epoch=int(match["epoch"]))
    if match := _GROUP.fullmatch(text):
        return Condition(group=match["group"], state=match["state"])
    if match := _TRANSACTION.fullmatch(text):
        return Condition(transactional_id=match["id"], state=match["state"])
    if match := _MESSAGES.fullmatch(text):
        return Condition(messages=match["messages"] or match["many"], count=int(match["count"] or 1))
    if match := _LOGS.fullmatch(text):
        if match["event"] not in KINDS:
            raise ValueError(f"not an event of the state-change log: {match['event']!r}")
        topic, partition = match["topic"] or "", int(match["partition"] or -1)
        return Condition(broker=match["roles"], event=match["event"], topic=topic, partition=partition)
    raise ValueError(f"not a condition: {text!r}; allowed: {ALLOWED}")
