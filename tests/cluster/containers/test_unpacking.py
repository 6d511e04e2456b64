"""Archives that no container of ours makes: whatever they hold, nothing is written outside their folder."""

import io
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.cluster.containers.unpacking import LONG_NAME_BYTES, Bounds, unpack
from harness.errors import ClusterError

CHUNK = 700
"""Not a multiple of tar's blocks."""
BOUNDS = Bounds(entries=40, size_bytes=10_000)


def member(name: str, type_: bytes = tarfile.REGTYPE, data: bytes = b"", **attributes: Any) -> tuple[Any, bytes]:
    info = tarfile.TarInfo(name)
    info.type, info.size = type_, len(data)
    for key, value in attributes.items():
        setattr(info, key, value)
    return info, data


def archive(*members: tuple[Any, bytes], format_: int = tarfile.PAX_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=format_) as tar:
        for info, data in members:
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def chunks(data: bytes) -> Iterator[bytes]:
    return (data[start : start + CHUNK] for start in range(0, len(data), CHUNK))


def cve_2025_4517(outside: Path) -> bytes:
    """Return links whose path is too long to be resolved, and a file written through them."""
    long, made, path = "d" * 247, [], ""
    for letter in "abcdefghijklmnop":
        made.append(member(path + long, tarfile.DIRTYPE))
        made.append(member(path + letter, tarfile.SYMTYPE, linkname=long))
        path += f"{long}/"
    deep = "/".join("abcdefghijklmnop") + "/" + "l" * 254
    made.append(member(deep, tarfile.SYMTYPE, linkname="../" * 16))
    made.append(member("escape", tarfile.SYMTYPE, linkname=f"{deep}/../{outside.name}"))
    made.append(member("through", tarfile.LNKTYPE, linkname="escape/kept"))
    made.append(member("through", data=b"written from outside"))
    return archive(*made)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder beside the one that an archive is unpacked to, with a file that must stay as it is."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "kept").write_text("mine")
    return folder


@pytest.mark.parametrize("format_", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_files_and_folders_with_long_names_are_unpacked(tmp_path: Path, format_: int) -> None:
    deep = "/".join(["d" * 90] * 3)
    data = archive(
        member("./", tarfile.DIRTYPE, mode=0o1777),
        member("é", data=b"x" * 3000, mode=0o400, uid=65_534),
        member("empty", type_=tarfile.AREGTYPE),
        member(deep, tarfile.DIRTYPE, mtime=1.5),
        member(f"{deep}/file", data=b"y" * 512, mtime=1.5),
        member("without/its/folder", data=b"z"),
        format_=format_,
    )
    unpack(chunks(data), tmp_path / "new", BOUNDS)
    files = {path.relative_to(tmp_path / "new").as_posix(): path for path in (tmp_path / "new").rglob("*")}
    sizes = {name: path.stat().st_size for name, path in files.items() if path.is_file()}
    assert sizes == {"é": 3000, "empty": 0, f"{deep}/file": 512, "without/its/folder": 1}
    assert files["é"].read_bytes() == b"x" * 3000


def sparse(_: Path) -> bytes:
    """Return one block that stands for eight gigabytes."""
    info = tarfile.TarInfo("sparse")
    info.type, info.size = tarfile.GNUTYPE_SPARSE, 512
    return info.tobuf(tarfile.GNU_FORMAT) + b"x" * 512 + bytes(1024)


def sparse_by_pax(_: Path) -> bytes:
    headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": str(8 << 30)}
    return archive(member("sparse", data=b"1\n0\n512\n", pax_headers=headers))


def header_only(size: int, type_: bytes = tarfile.REGTYPE) -> Callable[[Path], bytes]:
    """Return an archive whose one member says that it is so large."""

    def made(_: Path) -> bytes:
        info = tarfile.TarInfo("large")
        info.type, info.size = type_, size
        return info.tobuf(tarfile.GNU_FORMAT) + bytes(4096)

    return made


def broken_pax(data: bytes) -> Callable[[Path], bytes]:
    def made(_: Path) -> bytes:
        info = tarfile.TarInfo("header")
        info.type, info.size = tarfile.XHDTYPE, len(data)
        return info.tobuf(tarfile.USTAR_FORMAT) + data.ljust(512, b"\0") + archive(member("file"))

    return made


def of(*members: tuple[Any, bytes]) -> Callable[[Path], bytes]:
    return lambda _: archive(*members)


def cut(at: int) -> Callable[[Path], bytes]:
    return lambda _: archive(member("file", data=b"x" * 600))[:at]


REFUSED = [
    pytest.param(cve_2025_4517, "a symbolic link", id="CVE-2025-4517: links too long to be resolved"),
    pytest.param(lambda outside: archive(member("link", tarfile.LNKTYPE, linkname=str(outside / "kept"))),
                 "a hard link", id="a hard link out of the folder"),
    pytest.param(of(member("file", data=b"x"), member("link", tarfile.LNKTYPE, linkname="file")), "a hard link",
                 id="a hard link within the folder"),
    pytest.param(of(member("link", tarfile.SYMTYPE, linkname="../outside"), member("link/kept", data=b"x")),
                 "a symbolic link", id="a file through a link"),
    pytest.param(of(member("link", tarfile.SYMTYPE, linkname="file")), "a symbolic link", id="a link within"),
    pytest.param(of(member("disk", tarfile.BLKTYPE, devmajor=8)), "what is no file", id="a block device"),
    pytest.param(of(member("null", tarfile.CHRTYPE, devmajor=1, devminor=3)), "what is no file", id="a device"),
    pytest.param(of(member("pipe", tarfile.FIFOTYPE)), "what is no file", id="a pipe"),
    pytest.param(of(member("new", b"Z")), "what is no file", id="an unknown type"),
    pytest.param(of(member("../outside/kept", data=b"x")), "outside its folder", id="a path up"),
    pytest.param(of(member("a/../../outside/kept", data=b"x")), "outside its folder", id="a path down and up"),
    pytest.param(of(member("..", tarfile.DIRTYPE)), "outside its folder", id="the folder above"),
    pytest.param(lambda outside: archive(member(str(outside / "kept"), data=b"x")), "outside its folder",
                 id="an absolute path"),
    pytest.param(of(member("file", pax_headers={"path": "../outside/kept"}, data=b"x")), "outside its folder",
                 id="a path up in a PAX header"),
    pytest.param(of(member("file", pax_headers={"path": "a\0b"})), "outside its folder", id="a path with a NUL"),
    pytest.param(of(*(member(str(number)) for number in range(41))), "more than 40 entries", id="too many files"),
    pytest.param(of(member("a", data=b"x" * 6000), member("b", data=b"x" * 6000)), "more than 10000 bytes",
                 id="too many bytes"),
    pytest.param(header_only(1 << 40), "more than 10000 bytes", id="a terabyte, as its header says"),
    pytest.param(of(member("file", pax_headers={"size": str(1 << 50)})), "more than 10000 bytes",
                 id="a petabyte, as its PAX header says"),
    pytest.param(header_only(-512), "is no size", id="a negative size"),
    pytest.param(header_only(LONG_NAME_BYTES + 1, tarfile.XHDTYPE), "what is no file", id="a PAX header too long"),
    pytest.param(header_only(-1, tarfile.GNUTYPE_LONGNAME), "is no size", id="a long name of negative size"),
    pytest.param(sparse, "a sparse file", id="a sparse file"),
    pytest.param(sparse_by_pax, "a sparse file", id="a sparse file by its PAX header"),
    pytest.param(broken_pax(b"0 path=a\n"), "a broken PAX header", id="a PAX line of no length"),
    pytest.param(broken_pax(b"x path=a\n"), "is no size", id="a PAX line without a length"),
    pytest.param(broken_pax(b"900 path=a"), "a broken PAX header", id="a PAX line that is cut off"),
    pytest.param(cut(0), "ends too early", id="nothing"),
    pytest.param(cut(300), "ends too early", id="half a header"),
    pytest.param(cut(1000), "ends too early", id="half a file"),
    pytest.param(cut(1536), "ends too early", id="whole files and no end"),
    pytest.param(lambda _: b"x" * 1024, "cannot be read", id="no archive"),
]  # fmt: skip


@pytest.mark.parametrize(("made", "why"), REFUSED)
def test_what_is_refused_leaves_everything_outside_as_it_was(
    tmp_path: Path, outside: Path, made: Callable[[Path], bytes], why: str
) -> None:
    before = sorted(tmp_path.iterdir())
    with pytest.raises(ClusterError, match=why):
        unpack(chunks(made(outside)), tmp_path / "new", BOUNDS)
    assert sorted(tmp_path.iterdir()) == sorted([*before, tmp_path / "new"])
    assert [(path.name, path.read_text(), path.stat().st_nlink) for path in outside.iterdir()] == [("kept", "mine", 1)]
    assert all(path.is_dir() or path.is_file() for path in (tmp_path / "new").rglob("*"))
    assert not any(path.is_symlink() for path in (tmp_path / "new").rglob("*"))


def test_a_file_that_is_there_twice_is_not_written_over(tmp_path: Path) -> None:
    with pytest.raises(FileExistsError):
        unpack(chunks(archive(member("a", data=b"1"), member("a", data=b"2"))), tmp_path / "new", BOUNDS)
    assert (tmp_path / "new" / "a").read_bytes() == b"1"


def test_endless_names_are_bounded_as_files_are(tmp_path: Path) -> None:
    header = tarfile.TarInfo("long")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 512

    def endless() -> Iterator[bytes]:
        while True:
            yield header.tobuf(tarfile.GNU_FORMAT) + b"n" * 512

    with pytest.raises(ClusterError, match="more than 40 entries"):
        unpack(endless(), tmp_path / "new", BOUNDS)
