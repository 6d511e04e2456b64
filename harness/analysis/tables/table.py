"""What describes a fact table: its name, what a row is, its columns with their types; and columns that many share."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name, its Spark SQL type, and what it holds."""

    name: str
    type: str
    about: str


@dataclass(frozen=True, slots=True)
class Table:
    """One fact: what a row is, and its columns in order (`run_id` first)."""

    name: str
    row: str
    columns: tuple[Column, ...]

    @property
    def ddl(self) -> str:
        """The columns as Spark reads a schema."""
        return ", ".join(f"`{column.name}` {column.type}" for column in self.columns)


RUN = Column("run_id", "string", "the run, by the name of its folder")
TOPIC = Column("topic", "string", "topic")
PARTITION = Column("partition", "int", "partition of the topic")
BROKER = Column("broker", "int", "the broker that logged it")
INCARNATION = Column("incarnation", "string", "fresh each time the broker's process starts")
SEQ = Column("seq", "bigint", "position in that incarnation's state-change log")
TIME = Column("time_ns", "bigint", "when")
EPOCH = Column("leader_epoch", "int", "leader epoch of the partition")

LINE = (BROKER, INCARNATION, SEQ, TIME)
"""What every line of a state-change log has."""
NAMED = (TOPIC, PARTITION)


class Tables(list[Table]):
    """Tables in the order in which they are declared."""

    def declare(self, name: str, row: str, *columns: Column) -> Table:
        """Return one more table; every one begins with the run."""
        self.append(Table(name, row, (RUN, *columns)))
        return self[-1]
