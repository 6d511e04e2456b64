"""The folder for the results of a judged history: neither a run's own folder nor a part of the evidence."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from harness.errors import EvidenceError, ScenarioError
from harness.ingest.local_files import local_path
from harness.store.folder import RunFolder
from harness.system.writable import make_parent

OF_A_RUN = "is the folder of a run, whose facts and verdict would be lost: use another --into"


def result_folder(path: Path, places: Iterable[str]) -> RunFolder:
    """Return the folder for the results of a history; it exists then.

    Args:
        path: Where it is made.
        places: Paths of the evidence.

    Raises:
        ScenarioError: nothing can be written there, or other files would be overwritten or judged next time.
    """
    folder = RunFolder(path.resolve())
    if folder.plan.exists():
        raise ScenarioError(f"{path} {OF_A_RUN}")
    for text in places:
        with suppress(EvidenceError):  # the evidence is elsewhere
            evidence = local_path(text).resolve()
            if evidence.is_dir() and folder.root.is_relative_to(evidence):
                raise ScenarioError(f"{path} is in {text}, which holds evidence: use another --into")
    make_parent(folder.verdict)
    return folder
