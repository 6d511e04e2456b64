"""A chaos run is readable only for users that may read, in Airflow, the runs of the DAG that made it."""

import html
import json
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.chaos_airflow.conftest import logged_in
from tests.chaos_airflow.run_folders import NIGHTLY, SMOKE, SWEEP, begun, made, phase, swept, with_documents
from tests.verdicts import FAIL

if TYPE_CHECKING:
    from fastapi import FastAPI
    from fastapi.testclient import TestClient

RUN = "smoke-20261120T020000-00000007"
BESIDE = "smoke-20261119T020000-00000007"
RESTRICTED = "kill-leader-20261120T030000-00000008"
SWEPT = "20261120T030000"
PUBLIC = {"/runs/plotly-{digest}.min.js", "/static/{file}"}
"""The library of the timelines and the style of all pages, which show nothing of any run."""
QUERIES = {"/of": "?dag_id=chaos_smoke&run_id=manual__1", "/compare": f"?run={RUN}&run={BESIDE}"}
WHAT_PLACEHOLDERS_MEAN = {"name": RUN, "seed": "70", "document": "report", "path": "index.html", "file": "verdict.json"}


def addresses() -> list[str]:
    """Return an address for every route there is, one that answers a user who may read it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Airflow says of its own dependencies when it is imported
        from fastapi.routing import APIRoute

        from chaos_airflow.views.app import create_app

    addresses = []
    for route in create_app().routes:
        if getattr(route, "path", "") in PUBLIC:
            continue
        assert isinstance(route, APIRoute), f"{route} would answer without access checks"
        assert route.methods == {"GET"}
        query = QUERIES.get(route.path, "")
        meant = WHAT_PLACEHOLDERS_MEAN | ({"name": SWEPT} if "/sweeps" in route.path else {})
        addresses.append("/kafka-chaos" + route.path.replace(":path", "").format(**meant) + query)
    return addresses


@pytest.fixture
def run(runs: Path) -> str:
    """A run with all that there is to read of one, and a sweep."""
    with_documents(made(runs, RUN, origin=SMOKE))
    made(runs, BESIDE, origin=SMOKE, system=FAIL)
    swept(runs, SWEPT, 1)
    return RUN


def test_every_route_refuses_who_is_not_logged_in(anonymous: "TestClient", run: str) -> None:
    answers = {address: anonymous.get(address).status_code for address in addresses()}
    assert len(answers) >= 8
    assert set(answers.values()) == {401}, answers


@pytest.mark.parametrize(
    ("file", "code"),
    [
        pytest.param("plotly-0123456789abcdef.min.js", 200, id="the library, as a report asks for it"),
        pytest.param("plotly-0000000000000000.min.js", 404, id="one that is not there"),
        pytest.param("plotly-secret.min.js", 404, id="something that is called like it"),
        pytest.param("plotly-fedcba9876543210.min.js", 404, id="a link that leads out"),
        pytest.param("plotly-..%2fverdict.json%2f.min.js", 404, id="a path"),
    ],
)
def test_who_is_not_logged_in_gets_the_library_of_reports_and_nothing_else(
    anonymous: "TestClient", runs: Path, file: str, code: int
) -> None:
    for name in ("plotly-0123456789abcdef.min.js", "plotly-secret.min.js", "outside"):
        (runs / name).write_text("draw()", encoding="utf-8")
    (runs / "plotly-fedcba9876543210.min.js").symlink_to(runs / "outside")
    answer = anonymous.get(f"/kafka-chaos/runs/{file}")
    assert answer.status_code == code
    assert (answer.text == "draw()") == (code == 200)
    if code == 200:
        assert answer.headers["content-type"].startswith("text/javascript")
        assert "immutable" in answer.headers["cache-control"]


def test_who_is_not_logged_in_gets_what_a_refusal_looks_like_and_no_other_file(anonymous: "TestClient") -> None:
    page = anonymous.get("/kafka-chaos/").text
    styled = [place for place in re.findall(r'(?:href|src)="([^"]+)"', page) if "/static/" in place]
    assert len(styled) >= 4
    assert {anonymous.get(place).status_code for place in styled} == {200}
    for other in ("app.py", "..%2fapp.py", "%2e%2e%2f..%2fsettings.py"):
        assert anonymous.get(f"/kafka-chaos/static/{other}").status_code == 404


def test_every_route_refuses_a_user_without_rights(nobody: "TestClient", run: str) -> None:
    answers = {address: nobody.get(address).status_code for address in addresses()}
    assert set(answers.values()) == {403}, answers


def test_every_route_answers_a_user_who_may_read_the_dag(viewer: "TestClient", run: str) -> None:
    answers = {address: viewer.get(address).status_code for address in addresses()}
    assert set(answers.values()) == {200, 204, 307}, answers


def test_a_token_in_the_header_is_as_good_as_the_session(viewer: "TestClient", run: str) -> None:
    token = viewer.cookies["_token"]
    viewer.cookies.clear()
    assert viewer.get("/kafka-chaos/").status_code == 401
    assert viewer.get("/kafka-chaos/", headers={"Authorization": f"Bearer {token}"}).status_code == 200


@pytest.mark.parametrize("token", ["", "x", "a.b.c"])
def test_a_token_that_airflow_did_not_sign_is_refused(anonymous: "TestClient", run: str, token: str) -> None:
    anonymous.cookies.set("_token", token)
    assert anonymous.get("/kafka-chaos/").status_code in {401, 403}


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_nothing_can_be_changed(viewer: "TestClient", run: str, method: str) -> None:
    assert {viewer.request(method, address).status_code for address in addresses()} == {405}


@pytest.mark.parametrize(
    ("user", "origin", "offered"),
    [
        pytest.param("editor", SMOKE, "/api/v2/dags/chaos_smoke/dagRuns/manual__1/taskInstances/drive", id="a run"),
        pytest.param(
            "editor",
            NIGHTLY | {"map_index": 3},
            "/dagRuns/scheduled__2026-11-20T02%3A00%3A00%2B00%3A00/taskInstances/run.drive/3",
            id="a run of a night",
        ),
        pytest.param("viewer", SMOKE, "", id="not to a user that may only read"),
    ],
)
def test_a_run_that_goes_on_can_be_stopped_by_users_that_may_end_its_tasks(
    anonymous: "TestClient", runs: Path, user: str, origin: dict[str, str], offered: str
) -> None:
    begun(runs, RUN, phase("drive", "started")).origin.write_text(json.dumps(origin), encoding="utf-8")
    page = logged_in(anonymous, user).get(f"/kafka-chaos/runs/{RUN}").text
    found = re.search(r'data-stop="([^"]+)"', page)
    assert (found is not None) == bool(offered)
    assert found is None or found[1].endswith(offered)


def test_for_a_run_of_the_command_line_its_page_names_the_command_that_stops_it(
    editor: "TestClient", runs: Path
) -> None:
    begun(runs, RUN, phase("drive", "started"))
    assert f"chaos abort {RUN}" in editor.get(f"/kafka-chaos/runs/{RUN}").text


def test_who_is_not_logged_in_is_led_to_the_login_and_back(anonymous: "TestClient", run: str) -> None:
    assert "/auth/login?next=%2Fkafka-chaos%2Fruns%2F" in anonymous.get(f"/kafka-chaos/runs/{run}").text


@pytest.fixture
def only_smoke(viewer: "TestClient", airflow_app: "FastAPI", monkeypatch: pytest.MonkeyPatch) -> "TestClient":
    """A browser of a user that may read the runs of `chaos_smoke` and of no other DAG."""
    manager = airflow_app.state.auth_manager
    real = manager.is_authorized_dag

    def only(*, details: object, **others: object) -> bool:
        return getattr(details, "id", None) == "chaos_smoke" and real(details=details, **others)

    monkeypatch.setattr(manager, "is_authorized_dag", only)
    return viewer


class TestRightsOnOneDag:
    """A user that may read `chaos_smoke` alone, beside runs of another DAG and of the command line."""

    @pytest.fixture(autouse=True)
    def others(self, runs: Path, run: str) -> None:
        with_documents(made(runs, RESTRICTED, origin=NIGHTLY))
        made(runs, "by-hand-20261120T040000-00000009")

    def test_the_list_shows_what_may_be_read(self, only_smoke: "TestClient") -> None:
        page = only_smoke.get("/kafka-chaos/").text
        assert RUN in page
        assert RESTRICTED not in page
        assert "by-hand" not in page
        assert "kill-leader" not in page, "not even as a scenario to choose"

    def test_no_link_to_older_runs_names_one_that_may_not_be_read(
        self, only_smoke: "TestClient", runs: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("chaos_airflow.views.listing.SCANNED", 4)
        for second in range(5):
            (runs / f"by-hand-20261121T00000{second}-00000009").mkdir()
        page = only_smoke.get("/kafka-chaos/").text
        assert "by-hand" not in page
        older = html.unescape(page.partition('class="older" href="')[2].partition('"')[0])
        assert RUN in only_smoke.get(older).text

    def test_the_page_of_all_nights_shows_what_may_be_read(self, only_smoke: "TestClient") -> None:
        page = only_smoke.get("/kafka-chaos/trend").text
        assert "2 runs, 1 not as expected" in page
        assert f"/kafka-chaos/runs/{RUN}" in page
        assert RESTRICTED not in page
        assert "by-hand-20261120T040000" not in page

    def test_nothing_of_another_dags_run_is_handed_out(self, only_smoke: "TestClient") -> None:
        of_others = {address.replace(RUN, RESTRICTED) for address in addresses() if RUN in address}
        answers = {address: only_smoke.get(address).status_code for address in of_others}
        assert len(answers) >= 5
        assert set(answers.values()) == {403}, answers

    def test_whether_another_dag_made_a_run_is_not_told(self, only_smoke: "TestClient") -> None:
        query = {"dag_id": NIGHTLY["dag_id"], "run_id": NIGHTLY["run_id"]}
        assert only_smoke.get("/kafka-chaos/of", params=query).status_code == 403

    def test_nothing_of_a_sweep_is_told(self, only_smoke: "TestClient") -> None:
        of_sweeps = [address for address in addresses() if "/sweeps" in address]
        query = f"/kafka-chaos/of?dag_id={SWEEP['dag_id']}&run_id={SWEEP['run_id'].replace('+', '%2B')}"
        answers = {address: only_smoke.get(address).status_code for address in (*of_sweeps, query)}
        assert len(answers) == 4
        assert set(answers.values()) == {403}, answers
