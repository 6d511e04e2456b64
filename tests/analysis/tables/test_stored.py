"""Facts that an earlier version made."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from harness.analysis.tables.stored import fact_table
from harness.store.folder import RunFolder


def test_a_column_that_an_earlier_version_did_not_have_is_null(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.facts.mkdir()
    pq.write_table(pa.table({"topic": ["orders"], "offset": [3]}), folder.facts / "sends.parquet")
    table = fact_table(folder, "sends", ("transaction_outcome", "offset"))
    assert table.to_pylist() == [{"transaction_outcome": None, "offset": 3}]
