"""The place of each file of a run; the only module that knows the names inside a run folder."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, Self, TypeVar


class Root(Protocol):
    """A path on this machine or behind a URI."""

    @property
    def name(self) -> str:
        """Its last part."""
        ...

    def __truediv__(self, name: str, /) -> Self:
        """Return the path of this name in it."""
        ...


R = TypeVar("R", bound=Root)

TRANSACTIONS_DUMP = "transactions.jsonl"
LIBRARY = re.compile(r"plotly-[0-9a-f]{16}\.min\.js")
"""The chart library beside the folders of runs, one file for all reports.

Its name has the digest of its content: reports of an earlier release keep theirs.
"""


@dataclass(frozen=True, slots=True)
class ResultFolder(Generic[R]):
    """The files made from a run or a history, on this machine or behind a URI."""

    root: R

    @property
    def run_id(self) -> str:
        """The folder's name, unique within its parent; every label and every fact row carries it."""
        return self.root.name

    @property
    def plan(self) -> R:
        """Every target and instant that the seed chose, as JSON; only runs have one."""
        return self.root / "plan.json"

    @property
    def facts(self) -> R:
        """Folder with one Parquet table a fact."""
        return self.root / "facts"

    @property
    def findings(self) -> R:
        """The findings of all checks, as one Parquet table."""
        return self.root / "findings.parquet"

    @property
    def verdict(self) -> R:
        """The three verdicts with their reasons, as JSON."""
        return self.root / "verdict.json"

    @property
    def report(self) -> R:
        """One HTML page; its chart library is beside the folder, as `LIBRARY`, or in it."""
        return self.root / "report.html"


@dataclass(frozen=True, slots=True)
class RunFolder(ResultFolder[Path]):
    """One run's folder; every phase reads and writes here, and phases share nothing else."""

    # The scenario, and its plan.
    @property
    def scenario(self) -> Path:
        """The scenario after overrides, as YAML."""
        return self.root / "scenario.yaml"

    @property
    def format(self) -> Path:
        """The version of its evidence, as JSON."""
        return self.root / "format.json"

    @property
    def plugins(self) -> Path:
        """The plugins that the run uses, with the distribution and version of each, as JSON."""
        return self.root / "plugins.json"

    @property
    def seal(self) -> Path:
        """Size and digest of each file when the cluster had ended, as JSON."""
        return self.root / "seal.json"

    @property
    def tables(self) -> Path:
        """Folder with the evidence as typed tables, one folder a kind; made from the lines, again if missing."""
        return self.root / "tables"

    @property
    def log(self) -> Path:
        """The output of a run that left its terminal; missing otherwise."""
        return self.root / "run.log"

    @property
    def origin(self) -> Path:
        """The scheduler's task that started this run, as JSON; missing if the command line did."""
        return self.root / "origin.json"

    # What happened.
    @property
    def journal(self) -> Path:
        """The write-ahead fault journal."""
        return self.root / "journal.jsonl"

    @property
    def phases(self) -> Path:
        """One line a phase entered or left, with the instants and any error."""
        return self.root / "phases.jsonl"

    @property
    def sign(self) -> Path:
        """The last instant at which the phase under way was seen to go on; there is no such file between phases."""
        return self.root / "phase.sign"

    @property
    def operations(self) -> Path:
        """Folder with one JSONL file a client process."""
        return self.root / "operations"

    def operations_of(self, process: str) -> Path:
        """Return the file of one client process."""
        return self.operations / f"{process}.jsonl"

    @property
    def clients(self) -> Path:
        """Folder with the plan and the log of each client process."""
        return self.root / "clients"

    def client_plan(self, process: str) -> Path:
        """Return one client process's plan, as JSON."""
        return self.clients / f"{process}.json"

    def client_log(self, process: str) -> Path:
        """Return the log of one client process."""
        return self.clients / f"{process}.log"

    @property
    def brokers(self) -> Path:
        """Folder with one folder a broker: its state-change log, and its log for people."""
        return self.root / "brokers"

    def broker(self, broker_id: int) -> Path:
        """Return the folder with one broker's logs."""
        return self.brokers / str(broker_id)

    def state_change_log(self, broker_id: int) -> Path:
        """Return one broker's state-change log."""
        return self.broker(broker_id) / "state-change.jsonl"

    @property
    def zookeeper(self) -> Path:
        """The znode history."""
        return self.root / "zookeeper.jsonl"

    @property
    def liveness(self) -> Path:
        """The signs of life after the last heal."""
        return self.root / "liveness.jsonl"

    @property
    def replicas(self) -> Path:
        """Folder with one folder a broker: dumps of its replicas."""
        return self.root / "replicas"

    def replica_dump(self, broker_id: int, topic: str, partition: int) -> Path:
        """Return the dump of one replica; the prefix is for topics that start with `_`: Spark skips such files."""
        return self.replicas / str(broker_id) / f"replica-{topic}-{partition}.jsonl"

    def transactions_dump(self, broker_id: int) -> Path:
        """Return the state of transactions and producers in a broker's replicas; missing if there is none."""
        return self.replicas / str(broker_id) / TRANSACTIONS_DUMP

    def deleted_logs(self, broker_id: int) -> Path:
        """Return the list of folders that a broker had not yet removed from its disk; missing if there is none."""
        return self.replicas / str(broker_id) / "deleted.jsonl"

    @property
    def coverage(self) -> Path:
        """What the run tried and saw, counted, as JSON; missing in runs of earlier versions."""
        return self.root / "coverage.json"

    @property
    def reserve(self) -> Path:
        """Folder with disk space that the run keeps until its report is written (`harness/store/reserve.py`)."""
        return self.root / "reserve"

    @property
    def cluster(self) -> Path:
        """Working folder of the cluster driver while it runs: configuration, pid files, data."""
        return self.root / "cluster"

    def evidence(self) -> dict[str, list[Path]]:
        """Return the existing evidence files by kind, sorted."""
        candidates = {
            "operations": self.operations.glob("*.jsonl"),
            "journal": [self.journal],
            "zookeeper": [self.zookeeper],
            "replicas": self.replicas.glob("*/*.jsonl"),
            "state_changes": self.brokers.glob("*/state-change*.jsonl"),
            "liveness": [self.liveness],
        }
        return {kind: sorted(path for path in paths if path.is_file()) for kind, paths in candidates.items()}

    def evidence_bytes(self) -> int:
        """Return the size of all evidence files."""
        return sum(path.stat().st_size for paths in self.evidence().values() for path in paths)

    # What is made of the evidence.
    @property
    def junit(self) -> Path:
        """The verdicts as JUnit XML."""
        return self.root / "junit.xml"

    @property
    def data_docs(self) -> Path:
        """Great Expectations' Data Docs."""
        return self.root / "data_docs"

    @property
    def expectations(self) -> Path:
        """The results of the Great Expectations suites, as JSON."""
        return self.root / "expectations.json"
