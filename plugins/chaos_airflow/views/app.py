"""The application with the plugin's pages: it only answers GET, and no route to a run answers before `Reader` has."""

from datetime import date
from typing import Annotated

from fastapi import Depends, FastAPI, Query, Request, Response, status
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse
from pydantic import BeforeValidator
from starlette.exceptions import HTTPException

from chaos_airflow import links, settings
from chaos_airflow.runs import group_of
from chaos_airflow.views import files, pages, sweeps
from chaos_airflow.views.access import COMMAND_LINE, SWEEPS, Reader, ReaderDep, dag_of
from chaos_airflow.views.beside import beside, comparisons, fault_times
from chaos_airflow.views.listing import Filters, made_by, page_of
from chaos_airflow.views.live import now_of
from chaos_airflow.views.reading import NotThere, Overview, Runs, State, TooLarge
from harness.progress import Logged
from harness.report.trend.summary import summaries

Text = Annotated[str, Query(max_length=300)]
UnlessEmpty = BeforeValidator(lambda text: text or None)
Outcome = Annotated[State | None, UnlessEmpty]
Number = Annotated[int | None, UnlessEmpty]
Day = Annotated[date | None, UnlessEmpty]


def runs_at_hand() -> Runs:
    """Return the runs at the place that is configured now."""
    return Runs(settings.runs_folder())


RunsDep = Annotated[Runs, Depends(runs_at_hand)]


def readable_run(reader: ReaderDep, runs: RunsDep, name: str) -> Overview:
    """Return the run that the address names, if the user may see it."""
    run = runs.overview(name)
    reader.must_read(dag_of(run.origin))
    return run


RunDep = Annotated[Overview, Depends(readable_run)]


def readable_sweep(reader: ReaderDep, name: str) -> sweeps.SweepOverview:
    """Return the sweep that the address names, if the user may see it."""
    reader.must_read(SWEEPS)
    shown = sweeps.sweep(name)
    reader.must_read(_maker(shown))
    return shown


def _maker(shown: sweeps.SweepOverview) -> str:
    return shown.origin.dag_id if shown.origin else SWEEPS


SweepDep = Annotated[sweeps.SweepOverview, Depends(readable_sweep)]


def create_app() -> FastAPI:
    """Return the application, to be mounted by Airflow below `links.MOUNT`."""
    app = FastAPI(title="Chaos runs", dependencies=[Depends(Reader)], docs_url=None, redoc_url=None, openapi_url=None)
    app.get("/")(list_runs)
    app.get("/of")(find_runs)
    app.get("/trend")(trend)
    app.get("/compare")(compare)
    app.get("/sweeps")(list_sweeps)
    app.get("/sweeps/{name}")(show_sweep)
    app.get("/sweeps/{name}/{seed}")(show_schedule)
    app.add_route("/runs/plotly-{digest}.min.js", library)  # before the runs; this and the next are public
    app.add_route("/static/{file}", static)
    app.get("/runs/{name}")(show_run)
    app.get("/runs/{name}/now")(now)
    app.get("/runs/{name}/view/{document}")(show_document)
    app.get(f"/runs/{{name}}/{files.REPORT}")(report)
    app.get(f"/runs/{{name}}/{files.DATA_DOCS}/{{path:path}}")(data_docs)
    app.get("/runs/{name}/files/{file}")(download)
    app.get("/runs/{name}/archive")(archive)
    for kind in (HTTPException, RequestValidationError, NotThere, TooLarge, OSError):
        app.add_exception_handler(kind, explain)
    return app


def list_runs(
    reader: ReaderDep,
    runs: RunsDep,
    scenario: Text = "",
    outcome: Outcome = None,
    system: Text = "",
    driver: Text = "",
    seed: Number = None,
    since: Day = None,
    until: Day = None,
    dag_id: Text = "",
    run_id: Text = "",
    before: Text = "",
    skipped: Annotated[int, Query(ge=0)] = 0,
) -> Response:
    """Show the runs, the newest first."""
    filters = Filters(
        scenario=scenario,
        outcome=outcome,
        system=system,
        driver=driver,
        seed=seed,
        since=since,
        until=until,
        dag_id=dag_id,
        run_id=run_id,
        before=before,
        skipped=skipped,
    )
    return pages.runs(filters, page_of(runs, filters, reader.may_see))


def trend(reader: ReaderDep) -> Response:
    """Show all runs night by night, as far as the reader may see them."""
    if settings.is_remote():
        raise NotThere("Runs are in an object store, for which there is no page of all nights.")
    runs = summaries(settings.local_runs_folder(), Logged())
    return pages.trend(runs.of_dags(lambda dag: reader.may_read(dag or COMMAND_LINE)))


def compare(
    reader: ReaderDep, runs: RunsDep, run: Annotated[list[str], Query(max_length=50, default_factory=list)]
) -> Response:
    """Show several runs side by side."""
    shown = [readable_run(reader, runs, name) for name in run]
    return pages.compare(comparisons(shown))


def find_runs(
    reader: ReaderDep, runs: RunsDep, dag_id: Text, run_id: Text, task_id: Text = "", map_index: Text = ""
) -> Response:
    """Lead to the run of a DAG run or of a mapped task: to its last try, to the list of several, or to a sweep."""
    reader.must_read(dag_id)
    if dag_id == SWEEPS and (sweep := sweeps.sweep_of(dag_id, run_id)):
        return RedirectResponse(links.sweep_page(sweep.name))
    made = made_by(runs, runs.names(), dag_id, run_id)
    if map_index.isdecimal():  # which -1 is not, nor a placeholder that Airflow had nothing for
        wanted = (group_of(task_id), int(map_index))
        made = [(name, origin) for name, origin in made if (origin.group, origin.map_index) == wanted]
    if len({origin.map_index for _, origin in made}) == 1:
        return RedirectResponse(links.run_page(made[0][0].text))
    return RedirectResponse(links.list_page(dag_id=dag_id, run_id=run_id))


def list_sweeps(reader: ReaderDep) -> Response:
    """Show the sweeps, the newest first."""
    reader.must_read(SWEEPS)
    return pages.sweeps([shown for shown in sweeps.all_sweeps() if reader.may_read(_maker(shown))])


def show_sweep(sweep: SweepDep) -> Response:
    """Show one sweep: how many schedules held, what was found, and how to do it again."""
    return pages.sweep(sweep)


def show_schedule(sweep: SweepDep, seed: int) -> Response:
    """Show what became of one schedule of a sweep."""
    return pages.schedule(sweep, seed)


def show_run(reader: ReaderDep, run: RunDep, runs: RunsDep) -> Response:
    """Show one run: verdicts, faults, checks, suites, and what more there is to read."""
    documents = {key: shown.title for key, shown in files.DOCUMENTS.items() if runs.has(run.name, shown.file)}
    downloads = [file for file in files.RAW if runs.has(run.name, file)]
    going_on = now_of(run.name.text) if run.state is State.RUNNING else None
    other = None if going_on or settings.is_remote() else beside(runs, run, reader.may_see)
    times = fault_times(run.name.text) if run.result else {}
    return pages.run(run, going_on, documents, downloads, other, times=times, may_stop=reader.may_stop(run.origin))


def now(run: RunDep) -> Response:
    """Return what a run's page shows while it goes on; nothing when it is over."""
    if run.state is not State.RUNNING:
        return Response(status_code=status.HTTP_204_NO_CONTENT)
    return pages.now(run, now_of(run.name.text))


def show_document(run: RunDep, document: str) -> Response:
    """Show the report or Data Docs in a frame, with a way back."""
    if document not in files.DOCUMENTS:
        raise NotThere("no such document")
    return pages.document(run, files.DOCUMENTS[document])


def report(run: RunDep, runs: RunsDep) -> Response:
    """Return the report itself."""
    return files.report(runs, run.name)


def data_docs(run: RunDep, runs: RunsDep, path: str) -> Response:
    """Return a part of Data Docs."""
    return files.data_docs(runs, run.name, path)


def library(request: Request) -> Response:
    """Return what draws the timelines of all reports: public, as a report's sandbox has no login."""
    return files.library(runs_at_hand(), request.url.path.rpartition("/")[2])


def download(run: RunDep, runs: RunsDep, file: str) -> Response:
    """Return a file of the run to be saved."""
    return files.download(runs, run.name, file)


def archive(run: RunDep, runs: RunsDep) -> Response:
    """Return all files of the run as one archive to be saved."""
    return files.archive(runs, run.name)


def static(request: Request) -> Response:
    """Return the style sheet, the script or an icon of these pages: public, for a refusal is a page too."""
    return files.static(request.path_params["file"])


async def explain(request: Request, error: Exception) -> Response:
    """Say in a page what is wrong with a request, or with the place that runs lie at."""
    match error:
        case HTTPException(status_code=code, detail=detail):
            return pages.refusal(code, str(detail), request.url.path)
        case RequestValidationError():
            reasons = [f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors()]
            return pages.refusal(422, "; ".join(reasons), request.url.path)
        case NotThere():
            return pages.refusal(404, str(error), request.url.path)
        case TooLarge():
            return pages.refusal(413, str(error), request.url.path)
    return pages.refusal(503, f"The runs cannot be read: {error}", request.url.path)
