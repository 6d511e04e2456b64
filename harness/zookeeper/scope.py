"""Which znodes are evidence of a run: all of its own cluster's; of a shared cluster, only brokers and topics.

On a shared cluster the rest is private: its users, quotas and tokens, and topics of other users. The
topic of all groups' offsets is the run's too: an unclean election there explains offsets that went back.
"""

import re
from dataclasses import dataclass

from harness.values import OFFSETS_TOPIC, TRANSACTIONS_TOPIC

ROOTS = (
    "/admin/delete_topics",
    "/brokers",
    "/config/topics",
    "/controller",
    "/controller_epoch",
    "/latest_producer_id_block",
)
"""On a shared cluster, without znodes that name several topics at once."""
_INTERNAL = (OFFSETS_TOPIC, TRANSACTIONS_TOPIC)
_OF_TOPIC = re.compile("(?:/brokers/topics|/config/topics|/admin/delete_topics)/([^/]+)")


@dataclass(frozen=True, slots=True)
class Scope:
    """The znodes that are evidence."""

    prefix: str = ""
    """Prefix of the run's topics; empty if every topic and znode is the run's."""

    def holds(self, path: str) -> bool:
        """Return whether a znode is evidence."""
        if not self.prefix:
            return True
        topic = _OF_TOPIC.match(path)
        return _within(path) and (topic is None or topic[1] in _INTERNAL or topic[1].startswith(self.prefix))

    def leads_to(self, path: str) -> bool:
        """Return whether a znode, or one below it, is evidence."""
        return self.holds(path) or any(root.startswith(f"{path}/") for root in ROOTS)


EVERYTHING = Scope()
"""For a cluster of the run's own."""


def _within(path: str) -> bool:
    return any(path == root or path.startswith(f"{root}/") for root in ROOTS)
