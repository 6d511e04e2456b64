"""Writes all that is made from the code, the pages of docs/ and Airflow's form: `python -m tools.pages`."""

from collections.abc import Callable
from pathlib import Path

from tools.pages import broker_mutants, checks, draws, faults, judging, rooms, settings

PAGES: dict[Path, Callable[[], str]] = {
    broker_mutants.PAGE: broker_mutants.page,
    broker_mutants.PLOT: broker_mutants.plot,
    checks.PAGE: checks.page,
    draws.PAGE: draws.page,
    faults.PAGE: faults.page,
    judging.PAGE: judging.page,
    rooms.PICTURE: rooms.picture,
    settings.PAGE: settings.page,
}

if __name__ == "__main__":
    for path, text in PAGES.items():
        path.write_text(text(), encoding="utf-8")
    from chaos_airflow.tasks import ready  # it sets up logging as Airflow does

    ready.write()
