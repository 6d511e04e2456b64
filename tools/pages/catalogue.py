"""Which pages are generated? A test compares each file with what its generator returns."""

from tools.pages import (
    broker_mutants,
    checks,
    command_line,
    counts,
    draws,
    evidence,
    facts,
    faults,
    python_api,
    results,
    rooms,
    scenario_keys,
    settings,
)
from tools.pages.page import Page

PAGES: tuple[Page, ...] = (
    *broker_mutants.PAGES,
    *checks.PAGES,
    *command_line.PAGES,
    *counts.PAGES,
    *draws.PAGES,
    *evidence.PAGES,
    *facts.PAGES,
    *faults.PAGES,
    *python_api.PAGES,
    *results.PAGES,
    *rooms.PAGES,
    *scenario_keys.PAGES,
    *settings.PAGES,
)
