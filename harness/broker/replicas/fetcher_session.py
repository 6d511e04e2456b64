"""The follower's side of a fetch session (KIP-227): the changes for the next fetch, given the leader's last one.

Kafka's `FetchSessionHandler`. The leader may refuse or evict a session; then the next fetch is full again.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass, field

from harness.broker.replicas.fetch_sessions import FIRST_EPOCH, NO_SESSION, next_epoch
from harness.broker.replicas.fetcher_messages import Difference, PartitionRequest
from harness.broker.wire.error_codes import ErrorCode
from harness.values import TopicPartition


@dataclass(slots=True, eq=False)
class FetcherSession:
    """The session shared by one fetcher and its leader."""

    _id: int = NO_SESSION
    _epoch: int = FIRST_EPOCH
    _known: dict[TopicPartition, PartitionRequest] = field(default_factory=dict)
    """The last request to the leader."""
    _denied: bool = False

    def next(self, partitions: Sequence[PartitionRequest]) -> Difference:
        """Return the changes for exactly these partitions, assuming that the request is sent."""
        wanted = {each.key: each for each in partitions}
        known, self._known = self._known, wanted
        if self._epoch == FIRST_EPOCH:
            return Difference(self._id, self._epoch, partitions, ())
        changed = [each for each in partitions if known.get(each.key) != each]
        return Difference(self._id, self._epoch, changed, [key for key in known if key not in wanted])

    def answered(self, session_id: int, partitions: Set[TopicPartition]) -> bool:
        """Apply an answer without an error; False if it does not match the request."""
        fits = partitions == self._known.keys() if self._epoch == FIRST_EPOCH else partitions <= self._known.keys()
        if not fits:
            self.lost()
        elif session_id == NO_SESSION:
            self._denied = self._epoch == FIRST_EPOCH
            self._id, self._epoch = NO_SESSION, FIRST_EPOCH
        else:
            self._denied = False
            self._id, self._epoch = session_id, next_epoch(self._epoch)
        return fits

    @property
    def is_denied(self) -> bool:
        """Whether the leader answered the last full fetch without a session."""
        return self._denied

    def refused(self, error: int) -> None:
        """Start again, as the leader refuses this session."""
        self.lost()
        if error == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self._id = NO_SESSION

    def lost(self) -> None:
        """Start again, as an answer is missing or unusable; the leader must end the old session."""
        self._epoch = FIRST_EPOCH
