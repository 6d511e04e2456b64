"""Nobody reads a chaos run who may not read, in Airflow, the runs of the DAG that made it."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.chaos_airflow.run_folders import NIGHTLY, SMOKE, made, with_documents

if TYPE_CHECKING:
    from fastapi import FastAPI
    from fastapi.testclient import TestClient

RUN = "smoke-20261120T020000-00000007"
RESTRICTED = "kill-leader-20261120T030000-00000008"
WHAT_PLACEHOLDERS_MEAN = {"name": RUN, "document": "report", "path": "index.html", "file": "verdict.json"}


def addresses() -> list[str]:
    """Return an address for every route there is, one that answers a user who may read it."""
    from fastapi.routing import APIRoute

    from chaos_airflow.views.app import create_app

    addresses = []
    for route in create_app().routes:
        assert isinstance(route, APIRoute), f"{route} would answer whatever anybody may read"
        assert route.methods == {"GET"}
        meant = WHAT_PLACEHOLDERS_MEAN | ({"file": "style.css"} if route.path.startswith("/static") else {})
        query = "?dag_id=chaos_smoke&run_id=manual__1" if route.path == "/of" else ""
        addresses.append("/kafka-chaos" + route.path.replace(":path", "").format(**meant) + query)
    return addresses


@pytest.fixture
def run(runs: Path) -> str:
    """A run with all that there is to read of one."""
    with_documents(made(runs, RUN, origin=SMOKE))
    return RUN


def test_every_route_refuses_who_is_not_logged_in(anonymous: "TestClient", run: str) -> None:
    answers = {address: anonymous.get(address).status_code for address in addresses()}
    assert len(answers) >= 8
    assert set(answers.values()) == {401}, answers


def test_every_route_refuses_a_user_without_rights(nobody: "TestClient", run: str) -> None:
    answers = {address: nobody.get(address).status_code for address in addresses()}
    assert set(answers.values()) == {403}, answers


def test_every_route_answers_a_user_who_may_read_the_dag(viewer: "TestClient", run: str) -> None:
    answers = {address: viewer.get(address).status_code for address in addresses()}
    assert set(answers.values()) == {200, 307}, answers


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


def test_who_is_not_logged_in_is_led_to_the_login_and_back(anonymous: "TestClient", run: str) -> None:
    assert "/auth/login?next=%2Fkafka-chaos%2Fruns%2F" in anonymous.get(f"/kafka-chaos/runs/{run}").text


@pytest.fixture
def only_smoke(viewer: "TestClient", airflow_app: "FastAPI", monkeypatch: pytest.MonkeyPatch) -> "TestClient":
    """A browser of somebody who may read the runs of `chaos_smoke` and of no other DAG."""
    manager = airflow_app.state.auth_manager
    real = manager.is_authorized_dag

    def only(*, details: object, **others: object) -> bool:
        return getattr(details, "id", None) == "chaos_smoke" and real(details=details, **others)

    monkeypatch.setattr(manager, "is_authorized_dag", only)
    return viewer


class TestRightsOnOneDag:
    """Somebody who may read `chaos_smoke` alone, beside runs of another DAG and of the command line."""

    @pytest.fixture(autouse=True)
    def others(self, runs: Path, run: str) -> None:
        with_documents(made(runs, RESTRICTED, origin=NIGHTLY))
        made(runs, "by-hand-20261120T040000-00000009")

    def test_the_list_shows_what_may_be_read(self, only_smoke: "TestClient") -> None:
        page = only_smoke.get("/kafka-chaos/").text
        assert RUN in page
        assert RESTRICTED not in page
        assert "by-hand-20261120T040000" not in page

    def test_the_page_of_all_nights_shows_what_may_be_read(self, only_smoke: "TestClient") -> None:
        page = only_smoke.get("/kafka-chaos/trend").text
        assert "1 run, 0 not as expected" in page
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
