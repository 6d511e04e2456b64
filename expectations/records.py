"""Expectations about the records in the logs of replicas, for any table with one row a record of one replica."""

from typing import ClassVar

from great_expectations.compatibility import pydantic

from expectations.row_expectation import Examples, RowExpectation, examples_of
from expectations.rows import Rows, Values

_REPLICA = ["broker", "topic", "partition"]
_LAST_SEQUENCE = 2**31 - 1


class ExpectOneRecordPerOffset(RowExpectation):
    """Expect each offset of a log to hold one record at most."""

    key_columns: list[str] = pydantic.Field(default=_REPLICA, description="What names one log")
    offset_column: str = pydantic.Field(default="offset", description="The record's offset")

    sentence: ClassVar[str] = "There must be at most one record at each $offset_column, for each $key."

    examples: ClassVar[Examples] = examples_of(
        {"key_columns": ["node"], "offset_column": "place"},
        holds={"node": ["a", "a", "b"], "place": [0, 7, 0]},
        breaks={"node": ["a", "a", "b"], "place": [7, 7, 0]},
    )

    def holds(self, rows: Rows) -> Values:
        """Whether the record before it has a lower offset."""
        offset = self.offset_column
        return rows[offset] > rows.previous(offset, order=offset, keys=self.key_columns)


class ExpectLeaderEpochsNeverToGoBackInTheLog(RowExpectation):
    """Expect the leader epoch of a record never to be lower than that of the record before it in the log."""

    key_columns: list[str] = pydantic.Field(default=_REPLICA, description="What names one log")
    offset_column: str = pydantic.Field(default="offset", description="The record's offset")
    epoch_column: str = pydantic.Field(default="leader_epoch", description="The leader epoch stamped on the record")

    sentence: ClassVar[str] = "$epoch_column must never go back in the order of $offset_column, for each $key."

    examples: ClassVar[Examples] = examples_of(
        {"key_columns": ["node"], "offset_column": "place", "epoch_column": "term"},
        holds={"node": ["a", "a", "b"], "place": [0, 7, 8], "term": [2, 2, 1]},
        breaks={"node": ["a", "a", "b"], "place": [0, 7, 8], "term": [2, 1, 1]},
    )

    def holds(self, rows: Rows) -> Values:
        """Whether the record before it has no higher epoch."""
        return rows[self.epoch_column] >= rows.previous(
            self.epoch_column, order=self.offset_column, keys=self.key_columns
        )


class ExpectReplicasToHoldTheSameRecords(RowExpectation):
    """Expect records of one offset and leader epoch to be the same in every replica (log matching)."""

    key_columns: list[str] = pydantic.Field(default=["topic", "partition"], description="What names one partition")
    offset_column: str = pydantic.Field(default="offset", description="The record's offset")
    epoch_column: str = pydantic.Field(default="leader_epoch", description="The leader epoch stamped on the record")
    content_column: str = pydantic.Field(default="digest", description="The record, or a digest of it")

    sentence: ClassVar[str] = (
        "There must be one $content_column at each $offset_column of one $epoch_column, for each $key."
    )

    examples: ClassVar[Examples] = examples_of(
        {"key_columns": ["shard"], "offset_column": "place", "epoch_column": "term", "content_column": "text"},
        holds={"shard": ["a"] * 3, "place": [7, 7, 7], "term": [1, 1, 2], "text": ["x", "x", "y"]},
        breaks={"shard": ["a"] * 3, "place": [7, 7, 8], "term": [1, 1, 1], "text": ["x", "y", "z"]},
    )

    def holds(self, rows: Rows) -> Values:
        """Whether all rows of its offset and epoch hold the same."""
        return rows.all_equal(
            rows[self.content_column], keys=[*self.key_columns, self.offset_column, self.epoch_column]
        )


class ExpectProducerSequencesToIncrease(RowExpectation):
    """Expect the sequence numbers of an idempotent producer to strictly increase along a log (KIP-98)."""

    key_columns: list[str] = pydantic.Field(default=_REPLICA, description="What names one log")
    offset_column: str = pydantic.Field(default="offset", description="The record's offset")
    producer_column: str = pydantic.Field(default="producer_id", description="The producer's id")
    producer_epoch_column: str = pydantic.Field(default="producer_epoch", description="The epoch of that id")
    sequence_column: str = pydantic.Field(default="sequence", description="The record's sequence number")
    no_sequence: int = pydantic.Field(default=-1, description="What stands for no sequence number")

    sentence: ClassVar[str] = (
        "$sequence_column must strictly increase in the order of $offset_column, "
        "for each $producer_column and $producer_epoch_column of each $key."
    )

    examples: ClassVar[Examples] = examples_of(
        {"key_columns": ["node"], "offset_column": "place", "sequence_column": "number"},
        holds={
            "node": ["a"] * 5,
            "place": [0, 1, 2, 3, 4],
            "producer_id": [1, 1, 1, 2, 2],
            "producer_epoch": [0, 0, 0, 0, 1],
            "number": [0, 2**31 - 1, 0, -1, 0],
        },
        breaks={
            "node": ["a"] * 3,
            "place": [0, 1, 2],
            "producer_id": [1, 1, 2],
            "producer_epoch": [0, 0, 0],
            "number": [3, 3, 0],
        },
    )

    def holds(self, rows: Rows) -> Values:
        """Whether the sequence number is higher than the one before it, or that was the last that there is."""
        sequence = rows[self.sequence_column]
        keys = [*self.key_columns, self.producer_column, self.producer_epoch_column]
        before = rows.previous(self.sequence_column, order=self.offset_column, keys=keys)
        return (sequence == self.no_sequence) | (sequence > before) | (before == _LAST_SEQUENCE)
