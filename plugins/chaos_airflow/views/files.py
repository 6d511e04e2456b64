"""Which files of a run can be had, and how a browser is to take each: as a document in a cage, or as a download."""

import tempfile
import zipfile
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import PurePosixPath

from fastapi import Response
from fastapi.responses import StreamingResponse
from starlette.background import BackgroundTask

from chaos_airflow.runs import RunName
from chaos_airflow.views.headers import DOCS_POLICY, REPORT_POLICY
from chaos_airflow.views.reading import NAMES, NotThere, Runs
from harness.store.folder import LIBRARY

CHUNK_BYTES = 1 << 20
REPORT = str(NAMES.report)
DATA_DOCS = str(NAMES.data_docs)

RAW = {
    str(NAMES.verdict): "application/json",
    str(NAMES.junit): "application/xml",
    str(NAMES.scenario): "application/yaml",
    str(NAMES.plan): "application/json",
    str(NAMES.journal): "application/jsonl",
    str(NAMES.phases): "application/jsonl",
    str(NAMES.expectations): "application/json",
}
"""For download; nothing else of a run is handed out as it is."""

DOCS_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".png": "image/png",
    ".gif": "image/gif",
    ".svg": "image/svg+xml",
    ".ico": "image/x-icon",
    ".otf": "font/otf",
}

SHARED = files("harness.report") / "templates"
"""Of the pages that the harness makes: all have the same palette."""
STATIC_TYPES = {
    "page.css": "text/css; charset=utf-8",
    "style.css": "text/css; charset=utf-8",
    "frame.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "icon-dark.svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """Something to read that was made of a run, shown in a frame of the page `view/<key>`."""

    title: str
    file: str
    """The page it opens with, relative to the run's folder."""
    sandbox: str
    """Of the frame: what the document may do."""


DOCUMENTS = {
    "report": Document(title="Report", file=REPORT, sandbox="allow-scripts"),
    "data-docs": Document(title="Data Docs", file=f"{DATA_DOCS}/index.html", sandbox="allow-same-origin"),
}


def report(runs: Runs, name: RunName) -> Response:
    """Return the report, which may run its script and nothing more."""
    content = runs.read(name, REPORT)
    return Response(content, media_type="text/html", headers={"Content-Security-Policy": REPORT_POLICY})


def library(runs: Runs, file: str) -> Response:
    """Return what draws the timelines, which no browser needs to ask for twice."""
    if not LIBRARY.fullmatch(file):
        raise NotThere("no such file")
    headers = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(runs.beside(file), media_type=STATIC_TYPES["frame.js"], headers=headers)


def data_docs(runs: Runs, name: RunName, path: str) -> Response:
    """Return a page or a resource of Data Docs."""
    media_type = DOCS_TYPES.get(PurePosixPath(path).suffix)
    if media_type is None or path.startswith("/"):
        raise NotThere("no such page of Data Docs")
    content = runs.read(name, f"{DATA_DOCS}/{path}")
    return Response(content, media_type=media_type, headers={"Content-Security-Policy": DOCS_POLICY})


def download(runs: Runs, name: RunName, file: str) -> Response:
    """Return a file of the run to be saved."""
    if file not in RAW:
        raise NotThere(f"{file} is not for download")
    disposition = f'attachment; filename="{name.text}-{file}"'
    return Response(runs.read(name, file), media_type=RAW[file], headers={"Content-Disposition": disposition})


def archive(runs: Runs, name: RunName) -> Response:
    """Return all files of a run in a ZIP archive, whose one folder has the run's name."""
    packed = tempfile.TemporaryFile()  # noqa: SIM115  closed when all of it is sent
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as into:
        for file in runs.files(name):
            into.writestr(f"{name.text}/{file}", runs.read(name, file))
    packed.seek(0)
    disposition = f'attachment; filename="{name.text}.zip"'
    return StreamingResponse(
        iter(partial(packed.read, CHUNK_BYTES), b""),
        media_type="application/zip",
        headers={"Content-Disposition": disposition},
        background=BackgroundTask(packed.close),
    )


def static(file: str) -> Response:
    """Return a part of the pages themselves."""
    if file not in STATIC_TYPES:
        raise NotThere("no such file")
    folder = SHARED if file == "page.css" else files(__package__) / "static"
    return Response((folder / file).read_bytes(), media_type=STATIC_TYPES[file])
