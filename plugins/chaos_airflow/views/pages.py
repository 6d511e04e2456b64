"""The pages as HTML; everything that is shown is escaped."""

from collections.abc import Sequence
from datetime import datetime

from airflow.api_fastapi.app import get_auth_manager
from fastapi.responses import HTMLResponse
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from chaos_airflow import links
from chaos_airflow.views.beside import Beside
from chaos_airflow.views.files import Document
from chaos_airflow.views.headers import DOCS_POLICY
from chaos_airflow.views.listing import Filters, Page
from chaos_airflow.views.live import Now
from chaos_airflow.views.night import night_of
from chaos_airflow.views.reading import FOUND, MISSED, Overview, State
from chaos_airflow.views.sweeps import SweepOverview
from harness.contracts.registry import check_title
from harness.judging.why import why
from harness.progress import number_of
from harness.report import answers
from harness.report.compare import page as compare_page
from harness.report.compare.comparison import Comparison
from harness.report.trend.page import render
from harness.report.trend.summary import Summaries
from harness.store.result import RunResult

SHOWN_REASONS = 3
"""Of each run that did not end as expected; its page has all."""
UNAUTHENTICATED = 401
TITLES = {UNAUTHENTICATED: "Not logged in", 403: "Not yours to read", 404: "Nothing here", 503: "Not readable now"}

MOODS = answers.MOODS | {
    State.HELD: "good",
    State.VIOLATED: "bad",
    State.MISSED: "bad",
    State.BROKEN: "bad",
    State.DAMAGED: "bad",
    State.RUNNING: "busy",
    FOUND: "good",
    MISSED: "bad",
}
"""The colour beside the word; what is not named is open."""


def runs(filters: Filters, page: Page) -> HTMLResponse:
    """Return the list of runs."""
    older = links.list_page(**filters.asked, **page.older) if page.older else ""
    night = night_of(page.rows) if filters.whole_dag_run and page.rows else None
    return _page("list.html.j2", filters=filters, page=page, night=night, older=older, states=list(State))


def trend(summaries: Summaries) -> HTMLResponse:
    """Return the page of all nights, which brings its own style."""
    page = render(
        summaries,
        lambda run: links.run_page(run.name),
        compare=lambda *runs: links.compare_page(*(run.name for run in runs)),
        back=links.list_page(),
    )
    return HTMLResponse(page, headers={"Content-Security-Policy": DOCS_POLICY})


def compare(shown: Sequence[Comparison]) -> HTMLResponse:
    """Return the page of several runs side by side, which brings its own style."""
    page = compare_page.render(shown, links.run_page, back=links.list_page())
    return HTMLResponse(page, headers={"Content-Security-Policy": DOCS_POLICY})


def run(
    shown: Overview,
    now: Now | None,
    documents: dict[str, str],
    files: list[str],
    beside: Beside | None,
    *,
    times: dict[int, tuple[float | None, float | None]],
    may_stop: bool,
) -> HTMLResponse:
    """Return the page of one run.

    Args:
        shown: The run.
        now: How it is doing; None if it does not go on.
        documents: Titles by key.
        files: Names of downloads.
        beside: A run to look at beside it.
        times: When each injection began and was healed, in seconds since the first operation.
        may_stop: Whether the reader may end its tasks in Airflow.
    """
    return _page(
        "run.html.j2",
        run=shown,
        now=now,
        documents=documents,
        files=files,
        beside=beside,
        times=times,
        may_stop=may_stop,
    )


def now(shown: Overview, now: Now) -> HTMLResponse:
    """Return the part of that page that is asked for again and again."""
    return _page("now.html.j2", run=shown, now=now)


def document(shown: Overview, framed: Document) -> HTMLResponse:
    """Return a page with a document of a run in a frame."""
    return _page("document.html.j2", run=shown, document=framed)


def sweeps(shown: Sequence[SweepOverview]) -> HTMLResponse:
    """Return the list of sweeps."""
    return _page("sweeps.html.j2", sweeps=shown)


def sweep(shown: SweepOverview) -> HTMLResponse:
    """Return the page of one sweep."""
    return _page("sweep.html.j2", sweep=shown)


def schedule(shown: SweepOverview, seed: int) -> HTMLResponse:
    """Return the page of one schedule of a sweep."""
    return _page("schedule.html.j2", sweep=shown, schedule=shown.schedule(seed), command=shown.replay_of(seed))


def refusal(code: int, text: str, path: str) -> HTMLResponse:
    """Return the page that says why there is nothing else to see."""
    login = get_auth_manager().get_url_login(next_url=path) if code == UNAUTHENTICATED else ""
    return _page("refusal.html.j2", code, title=TITLES.get(code, "Not like this"), text=text, login=login)


def verdicts_of(result: RunResult | None) -> list[tuple[str, str]]:
    """Return the three questions with the words that answer them; no word for what is not known yet."""
    names = result.verdicts.names if result else dict.fromkeys(("fault", "system", "environment"), "")
    return [(question.capitalize(), name) for question, name in names.items()]


def mood(word: str) -> str:
    """Return the class of a verdict or state."""
    return MOODS.get(word, "open")


def instant(when: datetime) -> str:
    """Return an instant to the second, as people read it."""
    return f"{when:%Y-%m-%d %H:%M:%S}"


def duration(seconds: float) -> str:
    """Return a length of time in the two units that matter."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"


def _page(template: str, code: int = 200, **content: object) -> HTMLResponse:
    return HTMLResponse(_templates.get_template(template).render(content), code)


_templates = Environment(
    loader=ChoiceLoader([PackageLoader("chaos_airflow.views"), PackageLoader("harness.report")]),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_templates.globals.update(SHOWN_REASONS=SHOWN_REASONS, left_out=answers.left_out, links=links, verdicts_of=verdicts_of)
_templates.filters.update(
    answers=answers.answers,
    why=why,
    check_title=check_title,
    mood=mood,
    instant=instant,
    duration=duration,
    number_of=number_of,
)
