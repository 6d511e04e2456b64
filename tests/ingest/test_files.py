"""Which files of evidence are found, by Hadoop or by Python, and how much is in them."""

import bz2
import gzip
import os
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import EvidenceError
from harness.ingest.files import Files, stored_files
from harness.ingest.hadoop_files import HadoopFiles
from harness.ingest.local_files import LocalFiles, local_bytes
from harness.system.chain import all_chained

LINE = b'{"index":0}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with what counts, and with what does not."""
    root = tmp_path / "a b+c"
    for name in ("a.jsonl", "b.ndjson", "deep/c.json", "_hidden.jsonl", ".deep/d.jsonl"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(LINE)
    (root / "deep" / "empty.jsonl").touch()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "e.jsonl").write_bytes(LINE)
    (root / "link").symlink_to(tmp_path / "elsewhere")
    (root / "deep" / "torn.jsonl").write_bytes(LINE + b'{"ind')
    return root


@pytest.fixture(params=[pytest.param("hadoop", marks=pytest.mark.jvm), "local"])
def files(request: pytest.FixtureRequest) -> Files:
    if request.param == "local":
        return LocalFiles()
    return HadoopFiles(request.getfixturevalue("apache_spark"))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param("{}", ["a.jsonl", "b.ndjson", "deep/c.json", "deep/torn.jsonl", "link/e.jsonl"], id="a folder"),
        pytest.param("{}/link", ["link/e.jsonl"], id="a link to a folder"),
        pytest.param("{}/deep/../a.jsonl", ["a.jsonl"], id="a path that goes up"),
        pytest.param("{}/[^a].*", ["b.ndjson"], id="a glob of other letters"),
        pytest.param("{}/**/[ce].*", ["deep/c.json", "link/e.jsonl"], id="two stars are one"),
        pytest.param("{}/a**", ["a.jsonl"], id="two stars in a name"),
        pytest.param("{}/b.ndjson", ["b.ndjson"], id="a file"),
        pytest.param("file://{}/a.jsonl", ["a.jsonl"], id="a URI of this machine"),
        pytest.param("{}/*.[jn]*", ["_hidden.jsonl", "a.jsonl", "b.ndjson"], id="a glob takes what it names"),
        pytest.param("{}/d??p", ["deep/c.json", "deep/torn.jsonl"], id="a glob of folders"),
    ],
)
def test_a_text_stands_for_files(files: Files, folder: Path, text: str, names: list[str]) -> None:
    stored = stored_files(files, text.replace("{}", str(folder)))
    assert [file.shown.removeprefix(f"{folder}/") for file in stored] == names
    assert [file.shown.rpartition("/")[2] for file in stored if file.torn] == [
        "torn.jsonl" for name in names if name.endswith("torn.jsonl")
    ]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_what_is_compressed_is_unpacked_as_far_as_asked(files: Files, tmp_path: Path, pack: object) -> None:
    assert callable(pack)
    path = tmp_path / ("a.jsonl.gz" if pack is gzip.compress else "a.jsonl.bz2")
    path.write_bytes(pack(LINE * 300_000))
    (file,) = stored_files(files, str(path))
    assert (files.unpacked(file.path, 10**9), file.torn) == (3_600_000, False)
    assert 5000 <= files.unpacked(file.path, 5000) < 3_600_000


PACKS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".deflate": zlib.compress,
}
"""How text may be packed, by the end of its file's name; the last is known to Hadoop alone."""


def test_text_is_read_whoever_unpacks_it(files: Files, tmp_path: Path) -> None:
    for end in ["", *set(PACKS).intersection(files.compressions)]:
        path = tmp_path / f"a.jsonl{end}"
        path.write_bytes(PACKS[end](LINE * 300_000))
        with files.text(f"file:{path}") as stream:
            assert stream.readline() == LINE
            assert sum(line == LINE for line in stream) == 299_999


LONG = list(all_chained([b'{"text":"%b"}\n' % (b"a" * 400_000)] * 2))
LONGEST = list(all_chained([b'{"text":"%b"}\n' % (b"a" * 1_500_000)] * 2))


@pytest.mark.parametrize(
    ("content", "chained"),
    [
        pytest.param(LONG, True, id="long lines"),
        pytest.param(LONGEST, True, id="a first line that is longer than what is looked at first"),
        pytest.param([LINE, *LONG[1:]], True, id="a long line after one without a chain"),
        pytest.param([LONG[0][:-2] + b" }\n", *LONG[1:]], True, id="a long line with a damaged chain before another"),
        pytest.param([LINE] * 3, False, id="no chain"),
        pytest.param([LINE] * 100_000 + LONG, False, id="none among the first"),
    ],
)
def test_a_file_is_chained_if_a_line_among_its_first_is(
    files: Files, tmp_path: Path, content: list[bytes], chained: bool
) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"".join(content))
    (file,) = stored_files(files, str(tmp_path / "a.jsonl"))
    assert file.chained is chained


def test_a_link_that_leads_back_is_followed_no_further(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(LINE)
    (tmp_path / "back").symlink_to(tmp_path)
    assert [file.shown for file in stored_files(LocalFiles(), str(tmp_path))] == [f"{tmp_path}/a.jsonl"]


@pytest.mark.parametrize(
    ("content", "torn"),
    [
        pytest.param(b'\xef\xbb\xbf{"index":0}', False, id="a byte order mark before a whole line"),
        pytest.param(b'\xef\xbb\xbf{"ind', True, id="a byte order mark before half a line"),
        pytest.param(b"[" * 100_000, False, id="a list in itself, again and again"),
    ],
)
def test_a_last_line_without_an_end_is_torn_if_it_is_no_json(
    files: Files, tmp_path: Path, content: bytes, torn: bool
) -> None:
    (tmp_path / "a.jsonl").write_bytes(content)
    assert [file.torn for file in stored_files(files, str(tmp_path / "a.jsonl"))] == [torn]


@pytest.mark.parametrize("text", ["", "/*", "/*/deep.jsonl"])
def test_a_folder_that_cannot_be_read_is_named(tmp_path: Path, text: str) -> None:
    folder = tmp_path / "closed"
    folder.mkdir()
    (folder / "deep.jsonl").write_bytes(LINE)
    folder.chmod(0)
    try:
        if os.access(folder, os.R_OK):
            pytest.skip("nothing is closed to this user")
        with pytest.raises(EvidenceError, match=r"cannot be read: .*closed"):
            stored_files(LocalFiles(), f"{tmp_path}{text}")
    finally:
        folder.chmod(0o700)


def test_a_file_whose_name_is_not_utf_8_is_named(tmp_path: Path) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.jsonl")
    Path(path).write_bytes(LINE)
    for text in (path, str(tmp_path)):
        with pytest.raises(EvidenceError, match=r"\\udcff\.jsonl': its name is not UTF-8"):
            stored_files(LocalFiles(), text)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        pytest.param("none.jsonl", None, "there is no file", id="nothing"),
        pytest.param("none-*.jsonl", None, "there is no file", id="a glob of nothing"),
        pytest.param("none-[.jsonl", None, "there is no file|cannot be read", id="a glob that is none"),
        pytest.param("empty.jsonl", b"", "is empty", id="an empty file"),
        pytest.param("a.csv", b"a,b", "its name must end in one of .jsonl, .ndjson", id="another format"),
        pytest.param("a.parquet.gz", b"a", "its name must end in one of .jsonl, .ndjson", id="Parquet that is packed"),
    ],
)
def test_what_is_no_evidence_is_refused(
    files: Files, tmp_path: Path, name: str, content: bytes | None, reason: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(EvidenceError, match=reason):
        stored_files(files, str(tmp_path / name))


@pytest.mark.parametrize(
    ("texts", "size_bytes"),
    [
        pytest.param(["{}/a.jsonl", "{}/deep/c.json"], 2 * len(LINE), id="two files"),
        pytest.param(["{}/[ab].*"], 2 * len(LINE), id="a glob"),
        pytest.param(["{}/link"], len(LINE), id="a folder"),
        pytest.param(["{}/none.jsonl", "{}/a.jsonl"], len(LINE), id="what is not there counts nothing"),
        pytest.param(["s3a://bucket/a.jsonl", "{}/a.jsonl"], len(LINE), id="what lies elsewhere counts nothing"),
    ],
)
def test_the_size_of_what_lies_on_this_machine(folder: Path, texts: list[str], size_bytes: int) -> None:
    assert local_bytes(text.format(folder) for text in texts) == size_bytes
