"""Which files of evidence are found, by Hadoop or by Python, and how much is in them."""

import bz2
import gzip
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from harness.analysis.dialect import is_connect
from harness.errors import EvidenceError
from harness.ingest.files import Files, stored_files
from harness.ingest.hadoop_files import HadoopFiles
from harness.ingest.local_files import LocalFiles

pytestmark = pytest.mark.spark

LINE = b'{"index":0}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with what counts, and with what does not."""
    root = tmp_path / "a b+c"
    for name in ("a.jsonl", "b.ndjson", "deep/c.json", "_hidden.jsonl", ".deep/d.jsonl"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(LINE)
    (root / "deep" / "empty.jsonl").touch()
    (root / "deep" / "torn.jsonl").write_bytes(LINE + b'{"ind')
    return root


@pytest.fixture(params=["hadoop", "local"])
def files(request: pytest.FixtureRequest, spark: SparkSession) -> Files:
    if request.param == "local":
        return LocalFiles()
    if is_connect(spark):
        pytest.skip("the engine that was chosen has no JVM here, so nobody asks Hadoop")
    return HadoopFiles(spark)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param("{}", ["a.jsonl", "b.ndjson", "deep/c.json", "deep/torn.jsonl"], id="a folder"),
        pytest.param("{}/b.ndjson", ["b.ndjson"], id="a file"),
        pytest.param("file://{}/a.jsonl", ["a.jsonl"], id="a URI of this machine"),
        pytest.param("{}/*.[jn]*", ["_hidden.jsonl", "a.jsonl", "b.ndjson"], id="a glob takes what it names"),
        pytest.param("{}/d??p", ["deep/c.json", "deep/torn.jsonl"], id="a glob of folders"),
    ],
)
def test_a_text_stands_for_files(files: Files, folder: Path, text: str, names: list[str]) -> None:
    found = stored_files(files, text.replace("{}", str(folder)))
    assert [file.shown.removeprefix(f"{folder}/") for file in found] == names
    assert [file.shown.rpartition("/")[2] for file in found if file.torn] == [
        "torn.jsonl" for name in names if name.endswith("torn.jsonl")
    ]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_what_is_compressed_is_unpacked_as_far_as_asked(files: Files, tmp_path: Path, pack: object) -> None:
    assert callable(pack)
    path = tmp_path / ("a.jsonl.gz" if pack is gzip.compress else "a.jsonl.bz2")
    path.write_bytes(pack(LINE * 1000))
    (file,) = stored_files(files, str(path))
    assert (files.unpacked(file.path, 10**9), file.torn) == (12_000, False)
    assert 5000 <= files.unpacked(file.path, 5000) <= 12_000


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        pytest.param("none.jsonl", None, "there is no file", id="nothing"),
        pytest.param("none-*.jsonl", None, "there is no file", id="a glob of nothing"),
        pytest.param("empty.jsonl", b"", "is empty", id="an empty file"),
        pytest.param("a.csv", b"a,b", "its name must end in one of .jsonl, .ndjson", id="another format"),
        pytest.param("a.parquet.gz", b"a", "its name must end in one of .jsonl, .ndjson", id="Parquet that is packed"),
    ],
)
def test_what_is_no_evidence_is_refused(
    files: Files, tmp_path: Path, name: str, content: bytes | None, said: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(EvidenceError, match=said):
        stored_files(files, str(tmp_path / name))
