"""A real Airflow whose users have roles of Flask AppBuilder: a reader of one DAG sees nothing of another's runs."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import httpx
import pytest

from chaos_airflow.standalone.home import Settings, environment_of, migrate, own_home, passwords_of
from chaos_airflow.standalone.server import Server, serving
from harness.cluster.ports import PortReservations
from tests.airflow_server import OPTIONS
from tests.beside import beside
from tests.chaos_airflow.run_folders import NIGHTLY, SMOKE, begun, made, phase, swept, with_documents
from tests.chaos_airflow.test_access import SWEPT, addresses

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(900), pytest.mark.rotating(1, of="pages", together=True)]
FAB = "airflow.providers.fab.auth_manager.fab_auth_manager.FabAuthManager"
USERS_TIMEOUT_S = 180.0
FIRST_ANSWER_TIMEOUT_S = 120.0
"""FAB makes its pages when the first of them is asked for."""
READS = {
    "admin": None,
    "smoke": ["chaos_smoke"],
    "nights": ["chaos_nightly"],
    "repeats": ["chaos_repeat"],
    "sweeps": ["chaos_simulate"],
    "nobody": [],
}
"""Which DAGs each user may read; None: all."""
OF_SMOKE, OF_NIGHT = "smoke-20261120T020000-00000007", "kill-leader-20261120T030000-00000008"
BY_HAND, GOING_ON = "by-hand-20261120T040000-00000009", "going-on-20261120T050000-0000000a"
ALL = (OF_SMOKE, OF_NIGHT, BY_HAND, GOING_ON)


@pytest.fixture(scope="module")
def server(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Airflow with FAB, a run of two DAGs each, one that goes on and one of the command line."""
    home = tmp_path_factory.mktemp("airflow-with-fab")
    path = os.pathsep.join([str(beside(pytestconfig, "fab")), *filter(None, sys.path)])
    ports = PortReservations()
    settings = Settings(
        home=home / "home",
        runs=home / "runs",
        port=ports.reserve(1)[0],
        users=dict.fromkeys(READS, ""),
        options=OPTIONS | {"PYTHONPATH": path, "AIRFLOW__CORE__AUTH_MANAGER": FAB},
    )
    settings.runs.mkdir()
    with_documents(made(settings.runs, OF_SMOKE, origin=SMOKE))
    with_documents(made(settings.runs, OF_NIGHT, origin=NIGHTLY))
    begun(settings.runs, GOING_ON, phase("drive", "started")).origin.write_text(json.dumps(NIGHTLY), encoding="utf-8")
    made(settings.runs, BY_HAND)
    swept(settings.runs, SWEPT, 1)
    with own_home(settings):
        add_users(settings)
    with ports, serving(settings) as running:
        yield running


def add_users(settings: Settings) -> None:
    """Make the database with its users, before there is an Airflow that one could log in to."""
    environment = environment_of(settings, port=1)
    migrate(settings, environment)
    passwords = passwords_of(settings)
    users = {name: {"password": passwords[name], "dags": dags} for name, dags in READS.items()}
    command = [sys.executable, "-m", "tests.chaos_airflow.fab_users", json.dumps(users)]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=USERS_TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stderr


def nobody_known(server: Server) -> httpx.Client:
    """Return a browser without a login."""
    return httpx.Client(
        base_url=server.base_url, trust_env=False, follow_redirects=True, timeout=FIRST_ANSWER_TIMEOUT_S
    )


def page(server: Server, user: str, address: str) -> httpx.Response:
    with server.client(user) as client:
        return client.get(address)


@pytest.mark.parametrize(
    ("user", "visible"),
    [
        pytest.param("admin", {*ALL}, id="a reader of all DAGs sees all"),
        pytest.param("smoke", {OF_SMOKE}, id="a reader of one DAG sees its runs"),
        pytest.param("nights", {OF_NIGHT, GOING_ON}, id="a reader of another sees those"),
        pytest.param("repeats", set(), id="a reader of a DAG without runs sees none"),
    ],
)
@pytest.mark.parametrize(
    "place",
    [
        pytest.param("/", id="the list"),
        pytest.param("/trend", id="all nights"),
        pytest.param("/?dag_id={dag_id}&run_id={run_id}", id="a night"),
    ],
)
def test_a_page_of_many_runs_shows_those_that_may_be_read(
    server: Server, user: str, visible: set[str], place: str
) -> None:
    night = {name: value.replace("+", "%2B") for name, value in NIGHTLY.items()}
    answer = page(server, user, f"/kafka-chaos{place.format(**night)}")
    assert answer.status_code == httpx.codes.OK
    listed = {OF_NIGHT, GOING_ON} if "dag_id" in place else {*ALL} - ({GOING_ON} if place == "/trend" else set())
    assert {run for run in ALL if run in answer.text} == visible & listed
    for run in {*ALL} - visible:
        assert run.partition("-2026")[0] not in answer.text.replace("chaos_smoke", ""), "not even its scenario"


@pytest.mark.parametrize(
    ("user", "own", "others"),
    [
        pytest.param("smoke", OF_SMOKE, [OF_NIGHT, GOING_ON, BY_HAND], id="a reader of one DAG"),
        pytest.param("nights", OF_NIGHT, [OF_SMOKE, BY_HAND], id="a reader of another"),
    ],
)
def test_of_a_run_its_readers_have_everything_and_others_nothing(
    server: Server, user: str, own: str, others: list[str]
) -> None:
    of_runs = [address for address in addresses() if OF_SMOKE in address and "/compare" not in address]
    with server.client(user) as client:
        mine = {address.replace(OF_SMOKE, own): 0 for address in of_runs}
        answers = {address: client.get(address).status_code for address in mine}
        assert set(answers.values()) <= {httpx.codes.OK, httpx.codes.NO_CONTENT}, answers
        for run in others:
            theirs = {address.replace(OF_SMOKE, run) for address in of_runs}
            refused = {address: client.get(address).status_code for address in theirs}
            assert len(refused) >= 6
            assert set(refused.values()) == {httpx.codes.FORBIDDEN}, refused


def test_who_may_read_one_dag_is_not_led_to_the_runs_of_another(server: Server) -> None:
    query = f"?dag_id={NIGHTLY['dag_id']}&run_id={NIGHTLY['run_id'].replace('+', '%2B')}"
    assert page(server, "smoke", f"/kafka-chaos/of{query}").status_code == httpx.codes.FORBIDDEN
    assert page(server, "nights", f"/kafka-chaos/of{query}").is_redirect


def test_sweeps_are_for_the_readers_of_the_dag_that_makes_them(server: Server) -> None:
    of_sweeps = [address for address in addresses() if "/sweeps" in address]
    for user, code in (("sweeps", httpx.codes.OK), ("smoke", httpx.codes.FORBIDDEN)):
        answers = {address: page(server, user, address).status_code for address in of_sweeps}
        assert len(answers) == 3
        assert set(answers.values()) == {code}, answers


def test_who_may_read_no_dag_sees_no_page(server: Server) -> None:
    answers = {address: page(server, "nobody", address).status_code for address in addresses()}
    assert set(answers.values()) == {httpx.codes.FORBIDDEN}, answers


def test_who_is_not_logged_in_is_led_to_a_login_that_there_is(server: Server) -> None:
    with nobody_known(server) as stranger:
        refused = stranger.get(f"/kafka-chaos/runs/{OF_SMOKE}")
        assert refused.status_code == httpx.codes.UNAUTHORIZED
        assert "style.css" in refused.text
        login = refused.text.partition('class="door" href="')[2].partition('"')[0].replace("&amp;", "&")
        form = stranger.get(login)
    assert form.status_code == httpx.codes.OK
    assert 'name="password"' in form.text


def test_who_is_not_logged_in_gets_what_makes_the_refusal_a_page(server: Server) -> None:
    files = ("page.css", "style.css", "frame.js", "icon.svg")
    with nobody_known(server) as stranger:
        assert {stranger.get(f"/kafka-chaos/static/{file}").status_code for file in files} == {httpx.codes.OK}


def test_runs_are_where_the_user_may_read_nothing_else(server: Server) -> None:
    """FAB itself agrees: of Airflow's own API the user has that DAG alone."""
    with server.client("smoke") as client:
        assert client.get("/api/v2/dags/chaos_smoke").status_code == httpx.codes.OK
        assert client.get("/api/v2/dags/chaos_nightly").status_code == httpx.codes.FORBIDDEN
