"""Carries out one phase of a run, as a worker of a scheduler does: `python -m tools.kills.phase PHASE FOLDER`."""

import sys
from pathlib import Path

from harness import phases
from harness.errors import HarnessError
from harness.store.folder import RunFolder
from harness.store.phase_log import Phase


def main() -> None:
    """Carry it out; exit code 1 when it failed."""
    phase, root = sys.argv[1:]
    try:
        getattr(phases, Phase(phase))(RunFolder(Path(root)))
    except HarnessError as error:
        raise SystemExit(f"{phase}: {error}") from error


if __name__ == "__main__":
    main()
