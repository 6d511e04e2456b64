"""What the pages show, and what they tell the browser not to do."""

import html
import io
import json
import re
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from harness.scenario.file import load_scenario
from harness.scenario.plan import make_plan
from harness.verdict import SystemVerdict
from tests.chaos_airflow.run_folders import NIGHTLY, SMOKE, begun, made, phase, result_of, with_documents
from tests.raising import raising
from tests.verdicts import FAIL, PASS, UNKNOWN

if TYPE_CHECKING:
    from fastapi import FastAPI
    from fastapi.testclient import TestClient

RUN = "smoke-20261120T020000-00000007"
ASKED = {"dag_id": NIGHTLY["dag_id"], "run_id": NIGHTLY["run_id"]}
OF_TASK = {**ASKED, "task_id": "run.judge"}
SECOND_TRY = {**NIGHTLY, "task_id": "again.start", "map_index": 0, "repeats": ("run.start", 1)}


def listed(page: str) -> list[str]:
    """Return the names of the runs that a list shows, in its order."""
    return re.findall(r'class="name" href="/kafka-chaos/runs/([^"]+)"', page)


def of(second: int, scenario: str = "smoke") -> str:
    """Return the name of a run that was made in that second."""
    return f"{scenario}-20261120T02{second // 60:02d}{second % 60:02d}-{second:08x}"


@pytest.fixture
def suite(runs: Path) -> None:
    """A night of three runs, and one by hand before it."""
    made(runs, of(0, "by-hand"))
    for index, (scenario, system) in enumerate([("smoke", PASS), ("kill-leader", FAIL), ("pause", UNKNOWN)]):
        made(runs, of(index + 1, scenario), origin={**NIGHTLY, "map_index": index}, system=system)


def test_an_empty_folder_has_an_empty_list(viewer: "TestClient") -> None:
    page = viewer.get("/kafka-chaos/")
    assert (page.status_code, listed(page.text)) == (200, [])
    assert "No run" in page.text


@pytest.mark.usefixtures("suite")
@pytest.mark.parametrize(
    ("parameters", "seconds"),
    [
        pytest.param({}, [3, 2, 1, 0], id="the newest run comes first"),
        pytest.param({"scenario": "smoke"}, [1], id="by scenario"),
        pytest.param({"outcome": "violated"}, [2], id="by outcome"),
        pytest.param({"outcome": "held"}, [1, 0], id="by an outcome of several"),
        pytest.param({"scenario": "", "outcome": ""}, [3, 2, 1, 0], id="a form that is sent empty asks for everything"),
        pytest.param({"scenario": "pause", "outcome": "held"}, [], id="by both"),
        pytest.param(ASKED, [3, 2, 1], id="by DAG run"),
        pytest.param({"before": of(2, "kill-leader")}, [1, 0], id="those before the one a page ended with"),
        pytest.param({"before": "no name"}, [3, 2, 1, 0], id="before something that is no run means from the start"),
    ],
)
def test_the_list_shows_what_is_asked_for(viewer: "TestClient", parameters: dict[str, str], seconds: list[int]) -> None:
    shown = listed(viewer.get("/kafka-chaos/", params=parameters).text)
    assert [int(name.rsplit("-", 1)[1], 16) for name in shown] == seconds


@pytest.mark.usefixtures("suite")
def test_a_row_says_what_became_of_a_run(viewer: "TestClient") -> None:
    page = viewer.get("/kafka-chaos/", params={"scenario": "kill-leader"}).text
    badges = re.findall(r'class="badge (\w+)">([^<]+)<', page)
    assert badges == [("bad", "violated"), ("good", "CONFIRMED"), ("bad", "FAIL"), ("good", "CLEAN")]
    assert "/dags/chaos_nightly/runs/scheduled__2026-11-20T02%3A00%3A00%2B00%3A00" in page
    assert "54.0 s" in page


@pytest.mark.usefixtures("suite")
def test_the_list_of_a_dag_run_sums_it_up(viewer: "TestClient") -> None:
    page = viewer.get("/kafka-chaos/", params={**ASKED, "scenario": "smoke"}).text
    counts = re.findall(r'class="count">(\d+) <span class="badge \w+">([^<]+)<', page)
    assert counts == [("1", "held")]


@pytest.mark.parametrize(
    ("ends", "answer", "stories"),
    [
        pytest.param([("held", PASS), ("held", PASS)], "good: 2 as expected", [], id="all held"),
        pytest.param([("violated", FAIL), ("held", PASS)], "good: 2 as expected", [], id="a planted bug was found"),
        pytest.param([("violated", PASS)], "bad: 1 of 1 not as expected", [0], id="a planted bug was not found"),
        pytest.param([("held", PASS), ("held", FAIL)], "bad: 1 of 2 not as expected", [1], id="a promise is broken"),
        pytest.param([("held", UNKNOWN)], "bad: 1 of 1 not as expected", [0], id="nothing was proved"),
        pytest.param([("held", PASS), ("held", None)], "busy: 1 as expected, 1 going on", [], id="one goes on"),
    ],
)
def test_a_night_begins_with_its_answer_and_what_is_not_as_expected(
    viewer: "TestClient",
    runs: Path,
    ends: list[tuple[str, SystemVerdict | None]],
    answer: str,
    stories: list[int],
) -> None:
    for index, (expect, system) in enumerate(ends):
        origin = {**NIGHTLY, "map_index": index, "expect": expect}
        if system is None:
            begun(runs, of(index), phase("drive", "started")).origin.write_text(json.dumps(origin), encoding="utf-8")
        else:
            made(runs, of(index), origin=origin, system=system)
    page = viewer.get("/kafka-chaos/", params=ASKED).text
    assert [": ".join(parts) for parts in re.findall(r'class="answer (\w+)">([^<]+)<', page)] == [answer]
    replayed = re.findall(r'class="again"><code>chaos replay ([^<]+)<', page)
    assert replayed == [of(index) for index in stories]
    assert page.count("What was acknowledged is there.") == len([index for index in stories if ends[index][1] != PASS])


@pytest.mark.parametrize(
    "second",
    [
        pytest.param({**NIGHTLY, "map_index": 1}, id="by the same task"),
        pytest.param(SECOND_TRY, id="by the task that repeats what proved nothing"),
    ],
)
def test_a_try_that_was_followed_by_another_does_not_count(
    viewer: "TestClient", runs: Path, second: dict[str, Any]
) -> None:
    made(runs, of(0), origin={**NIGHTLY, "map_index": 0})
    made(runs, of(1), origin={**NIGHTLY, "map_index": 1}, system=UNKNOWN)
    made(runs, of(2), origin=second)
    page = viewer.get("/kafka-chaos/", params=ASKED).text
    assert 'class="answer good">2 as expected<' in page
    assert listed(page) == [of(2), of(0), of(1)]


def test_a_night_without_a_run_says_where_to_look(viewer: "TestClient") -> None:
    assert "the logs of its tasks say why" in viewer.get("/kafka-chaos/", params=ASKED).text


def test_pages_follow_each_other_without_a_gap_or_a_repetition(viewer: "TestClient", runs: Path) -> None:
    for second in range(120):
        made(runs, of(second))
    seen: list[str] = []
    address: str | None = "/kafka-chaos/"
    pages = 0
    while address is not None:
        page = viewer.get(address).text
        seen += listed(page)
        older = re.search(r'class="older" href="([^"]+)"', page)
        address = older[1].replace("&amp;", "&") if older else None
        pages += 1
    assert (pages, seen) == (3, [of(second) for second in reversed(range(120))])


def test_a_run_that_is_not_over_and_one_that_is_damaged_leave_the_others_alone(
    viewer: "TestClient", runs: Path
) -> None:
    made(runs, of(1))
    begun(runs, of(2), phase("drive", "started"))
    begun(runs, of(3)).verdict.write_text("{torn", encoding="utf-8")
    (runs / "notes").mkdir()
    page = viewer.get("/kafka-chaos/").text
    assert listed(page) == [of(3), of(2), of(1)]
    assert re.findall(r'class="badge \w+">(damaged|running|held)<', page) == ["damaged", "running", "held"]
    for name in listed(page):
        assert viewer.get(f"/kafka-chaos/runs/{name}").status_code == 200


def test_the_page_of_a_run_says_all_of_it(viewer: "TestClient", runs: Path) -> None:
    changes = {"residue": ["a process stayed"], "remarks": [{"text": "a torn line"}], "planted_bugs": ["fence"]}
    with_documents(made(runs, RUN, origin={**NIGHTLY, "map_index": 2}, **changes))
    page = viewer.get(f"/kafka-chaos/runs/{RUN}").text
    for text in ("process gone", "What was acknowledged is there.", "leader_epochs", "a process stayed", "a torn line"):
        assert text in page
    for led_to in ("view/report", "view/data-docs", "files/verdict.json", "tasks/run.start/mapped/2"):
        assert led_to in page
    assert "files/junit.xml" not in page, "it has none"


def test_whatever_a_run_says_is_text(viewer: "TestClient", runs: Path) -> None:
    evil = "<script>alert(1)</script>\"'"
    result = result_of(RUN, scenario=evil, planted_bugs=[evil], driver=evil, residue=[evil], remarks=[{"text": evil}])
    folder = made(runs, RUN, origin={**SMOKE, "dag_id": evil, "run_id": evil, "task_id": evil})
    result.save(folder.verdict)
    begun(runs, of(2), phase(evil, "started"))
    begun(runs, of(3)).verdict.write_text(f'{{"{evil}', encoding="utf-8")
    places = ["", f"runs/{RUN}", f"runs/{of(2)}", f"runs/{of(3)}", f"runs/{evil}"]
    places += ["?" + urlencode({"dag_id": evil, "run_id": evil}), "?" + urlencode({"outcome": evil, "scenario": evil})]
    for place in places:
        page = viewer.get(f"/kafka-chaos/{place}").text
        assert "alert(1)" not in page or "&lt;script&gt;alert(1)" in page
        assert "<script>alert" not in page
        assert 'href="javascript' not in page


@pytest.mark.parametrize(
    ("place", "code", "policy"),
    [
        pytest.param("", 200, "default-src 'none'; script-src 'self'; style-src 'self'", id="the list"),
        pytest.param(f"runs/{RUN}", 200, "default-src 'none'; script-src 'self'; style-src 'self'", id="a run"),
        pytest.param("trend", 200, "default-src 'none'; style-src 'self' 'unsafe-inline'", id="all nights"),
        pytest.param(f"runs/{RUN}/view/report", 200, "frame-src 'self'", id="the frame around the report"),
        pytest.param(f"runs/{RUN}/report.html", 200, "sandbox allow-scripts; default-src 'none'", id="the report"),
        pytest.param(f"runs/{RUN}/data_docs/index.html", 200, "default-src 'none'; style-src", id="Data Docs"),
        pytest.param(f"runs/{RUN}/files/verdict.json", 200, "default-src 'none'", id="a download"),
        pytest.param("static/frame.js", 200, "default-src 'none'", id="a part of the pages"),
        pytest.param("runs/none", 404, "default-src 'none'", id="a refusal"),
        pytest.param("?outcome=odd", 422, "default-src 'none'", id="a bad question"),
    ],
)
def test_every_answer_is_locked_in(viewer: "TestClient", runs: Path, place: str, code: int, policy: str) -> None:
    with_documents(made(runs, RUN))
    answer = viewer.get(f"/kafka-chaos/{place}")
    assert answer.status_code == code
    assert policy in answer.headers["content-security-policy"]
    assert "frame-ancestors 'self'" in answer.headers["content-security-policy"]
    assert "allow-same-origin" not in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "same-origin"


def test_the_answer_to_a_bug_is_locked_in_too(
    viewer: "TestClient", airflow_app: "FastAPI", monkeypatch: pytest.MonkeyPatch
) -> None:
    from fastapi.testclient import TestClient

    monkeypatch.setattr("chaos_airflow.settings.runs_folder", raising(RuntimeError("a bug")))
    answer = TestClient(airflow_app, raise_server_exceptions=False, cookies=viewer.cookies).get("/kafka-chaos/")
    assert (answer.status_code, answer.text) == (500, "Internal Server Error")
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_pages_need_nothing_inline_and_nothing_from_elsewhere(viewer: "TestClient", runs: Path) -> None:
    with_documents(made(runs, RUN, origin=SMOKE))
    for place in ("", f"runs/{RUN}", f"runs/{RUN}/view/report"):
        page = viewer.get(f"/kafka-chaos/{place}").text
        assert not re.search(r"<script(?! src=\"/)|<style|style=|\son\w+=|(src|href)=\"(https?:)?//", page)


def test_downloads_are_saved_and_not_shown(viewer: "TestClient", runs: Path) -> None:
    made(runs, RUN)
    answer = viewer.get(f"/kafka-chaos/runs/{RUN}/files/verdict.json")
    assert answer.headers["content-disposition"] == f'attachment; filename="{RUN}-verdict.json"'
    assert answer.json()["run_id"] == RUN


@pytest.mark.parametrize(
    "place",
    [
        pytest.param("runs/%2e%2e", id="the parent of all runs"),
        pytest.param("runs/%2e%2e/files/verdict.json", id="its parent, encoded"),
        pytest.param("runs/..%2f..%2fetc/files/verdict.json", id="slashes in a name"),
        pytest.param("runs/%2fetc/files/passwd", id="an absolute name"),
        pytest.param(f"runs/{RUN}%00/files/verdict.json", id="NUL in a name"),
        pytest.param(f"runs/{RUN}/data_docs/../verdict.json", id="out of Data Docs"),
        pytest.param(f"runs/{RUN}/data_docs/..%2fverdict.json", id="out of Data Docs, encoded"),
        pytest.param(f"runs/{RUN}/data_docs/..%2freport.html", id="the report without its own policy"),
        pytest.param(f"runs/{RUN}/data_docs/%2e%2e/%2e%2e/outside.html", id="out of the run"),
        pytest.param(f"runs/{RUN}/data_docs/..%5c..%5coutside.html", id="backslashes"),
        pytest.param(f"runs/{RUN}/data_docs//etc/passwd.html", id="an absolute path"),
        pytest.param(f"runs/{RUN}/data_docs/%2fetc%2fpasswd.html", id="an absolute path, encoded"),
        pytest.param(f"runs/{RUN}/data_docs/index.html%00.css", id="NUL in a path"),
        pytest.param(f"runs/{RUN}/data_docs/link.html", id="a link that leads out"),
        pytest.param(f"runs/{RUN}/data_docs/folder/outside.html", id="a linked folder that leads out"),
        pytest.param(f"runs/{RUN}/data_docs/secret.py", id="a file that no page needs"),
        pytest.param(f"runs/{RUN}/data_docs/", id="a folder"),
        pytest.param(f"runs/{RUN}/files/phases.jsonl", id="a file that leads out by a link"),
        pytest.param(f"runs/{RUN}/files/origin.json", id="a file that is not for download"),
        pytest.param(f"runs/{RUN}/files/..%2fverdict.json", id="a download by a path"),
        pytest.param("runs/linked-20261120T020000-00000001", id="a run that is a link"),
        pytest.param("static/..%2fapp.py", id="out of the static files"),
        pytest.param("static/../app.py", id="out of the static files, plainly"),
    ],
)
def test_nothing_outside_of_a_run_is_handed_out(viewer: "TestClient", runs: Path, place: str) -> None:
    folder = made(runs, RUN, origin=SMOKE)
    with_documents(folder)
    outside = runs.parent / "outside.html"
    outside.write_text("OUTSIDE", encoding="utf-8")
    (folder.data_docs / "link.html").symlink_to(outside)
    (folder.data_docs / "folder").symlink_to(runs.parent)
    folder.phases.symlink_to(outside)
    linked = made(runs.parent / "other", "linked-20261120T020000-00000001").root
    (runs / linked.name).symlink_to(linked)
    answer = viewer.get(f"/kafka-chaos/{place}", follow_redirects=False)
    assert answer.status_code == 404
    assert "OUTSIDE" not in answer.text


class TestWayFromAirflow:
    """`/of`, which every DAG run and every task instance links to."""

    @pytest.mark.usefixtures("suite")
    @pytest.mark.parametrize(
        ("parameters", "leads_to"),
        [
            pytest.param(
                {**OF_TASK, "map_index": "1"},
                f"runs/{of(2, 'kill-leader')}",
                id="a mapped task: its run",
            ),
            pytest.param({**ASKED, "map_index": "-1"}, "?" + urlencode(ASKED), id="a task beside the group: all"),
            pytest.param({**ASKED, "map_index": "{MAP_INDEX}"}, "?" + urlencode(ASKED), id="nothing filled in: all"),
            pytest.param(
                {**OF_TASK, "map_index": "9"},
                "?" + urlencode(ASKED),
                id="a task that made none: all",
            ),
            pytest.param(ASKED, "?" + urlencode(ASKED), id="the DAG run: all"),
            pytest.param(
                {"dag_id": "other", "run_id": "x"},
                "?dag_id=other&run_id=x",
                id="a DAG that is none of ours: an empty list",
            ),
        ],
    )
    def test_it_leads_to(self, viewer: "TestClient", parameters: dict[str, str], leads_to: str) -> None:
        answer = viewer.get("/kafka-chaos/of", params=parameters)
        assert answer.headers["location"] == f"/kafka-chaos/{leads_to}"

    def test_a_mapped_task_that_made_none_never_leads_to_the_run_of_another(
        self, viewer: "TestClient", runs: Path
    ) -> None:
        made(runs, RUN, origin={**NIGHTLY, "map_index": 0})
        answer = viewer.get("/kafka-chaos/of", params={**OF_TASK, "map_index": "1"})
        assert answer.headers["location"] == "/kafka-chaos/?" + urlencode(ASKED)

    def test_the_first_and_the_second_try_of_a_suite_each_lead_to_their_run(
        self, viewer: "TestClient", runs: Path
    ) -> None:
        made(runs, of(1), origin={**NIGHTLY, "map_index": 0})
        made(runs, of(2), origin={**NIGHTLY, "map_index": 1}, system=UNKNOWN)
        made(runs, of(3), origin=SECOND_TRY)
        for task, number in (("run.judge", 1), ("again.judge", 3)):
            answer = viewer.get("/kafka-chaos/of", params={**ASKED, "task_id": task, "map_index": "0"})
            assert answer.headers["location"] == f"/kafka-chaos/runs/{of(number)}"

    def test_of_several_tries_the_last(self, viewer: "TestClient", runs: Path) -> None:
        for second in (1, 3, 2):
            made(runs, of(second), origin=SMOKE)
        answer = viewer.get("/kafka-chaos/of", params={"dag_id": SMOKE["dag_id"], "run_id": SMOKE["run_id"]})
        assert answer.headers["location"] == f"/kafka-chaos/runs/{of(3)}"


def test_behind_a_prefix_every_address_has_it(
    viewer: "TestClient", runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(runs, RUN, origin=SMOKE)
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://ops.example/airflow/")
    page = viewer.get(f"/kafka-chaos/runs/{RUN}").text
    addresses = re.findall(r'(?:href|src|action)="([^"]+)"', page)
    assert addresses
    assert all(address.startswith("/airflow/") for address in addresses)


def test_a_place_that_cannot_be_read_is_said(viewer: "TestClient", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__KAFKA_CHAOS__RUNS", "nowhere://bucket/runs")
    answer = viewer.get("/kafka-chaos/")
    assert answer.status_code == 503
    assert "nowhere" in answer.text


@pytest.mark.parametrize("place", ["", f"runs/{RUN}", f"runs/{RUN}/report.html", "static/page.css"])
def test_what_the_browser_has_already_is_not_sent_again(viewer: "TestClient", runs: Path, place: str) -> None:
    folder = made(runs, RUN)
    with_documents(folder)
    first = viewer.get(f"/kafka-chaos/{place}")
    again = viewer.get(f"/kafka-chaos/{place}", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["content-security-policy"] == first.headers["content-security-policy"]
    other = viewer.get(f"/kafka-chaos/{place}", headers={"If-None-Match": 'W/"another"'})
    assert (other.status_code, other.text) == (200, first.text)


def test_a_report_is_compressed_on_its_way(viewer: "TestClient", runs: Path) -> None:
    folder = made(runs, RUN)
    folder.report.write_text("<p>much of the same</p>" * 1000, encoding="utf-8")
    answer = viewer.get(f"/kafka-chaos/runs/{RUN}/report.html", headers={"Accept-Encoding": "gzip"})
    assert answer.headers["content-encoding"] == "gzip"


def test_a_run_that_goes_on_says_how_it_is_doing_and_is_asked_again_until_it_is_over(
    viewer: "TestClient", runs: Path
) -> None:
    folder = begun(runs, RUN, phase("start", "ended"), phase("drive", "started"))
    folder.plan.write_text(make_plan(load_scenario("smoke"), 7).to_json(), encoding="utf-8")
    folder.zookeeper.write_text('{"type": "set", "path": "/brokers/ids/1"}\n', encoding="utf-8")
    page = viewer.get(f"/kafka-chaos/runs/{RUN}").text
    assert f'data-now="/kafka-chaos/runs/{RUN}/now"' in page
    assert "1 of 1 registered: 1" in page
    with folder.zookeeper.open("a", encoding="utf-8") as history:
        history.write('{"type": "delete", "path": "/brokers/ids/1"}\n')
    part = viewer.get(f"/kafka-chaos/runs/{RUN}/now")
    assert "0 of 1 registered: none" in part.text
    assert "<html" not in part.text
    result_of(RUN).save(folder.verdict)
    assert viewer.get(f"/kafka-chaos/runs/{RUN}/now").status_code == 204
    assert "data-now" not in viewer.get(f"/kafka-chaos/runs/{RUN}").text


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        pytest.param({"system": "kafka:4.4.0"}, [2], id="a system"),
        pytest.param({"driver": "docker"}, [3], id="a driver"),
        pytest.param({"seed": "9"}, [3], id="a seed"),
        pytest.param({"since": "2026-11-21"}, [2, 3], id="from a day on"),
        pytest.param({"until": "2026-11-21", "driver": "process"}, [1, 2], id="until a day, and a driver"),
        pytest.param({"seed": "", "since": "", "system": ""}, [1, 2, 3], id="nothing filled in"),
    ],
)
def test_the_list_is_filtered_by_what_is_under_test_and_when(
    viewer: "TestClient", runs: Path, asked: dict[str, str], shown: list[int]
) -> None:
    made(runs, "one-20261120T020000-00000007", origin=NIGHTLY)
    second = made(runs, "two-20261121T020000-00000008", origin=NIGHTLY)
    result_of(second.run_id).model_copy(update={"system": "kafka:4.4.0"}).save(second.verdict)
    made(runs, "three-20261122T020000-00000009", origin=NIGHTLY, driver="docker")
    page = viewer.get("/kafka-chaos/", params=asked).text
    links_shown = [number for number, name in enumerate(("one", "two", "three"), 1) if f"/runs/{name}-2026" in page]
    assert links_shown == shown


def test_a_whole_run_is_one_archive_without_links_and_the_cluster(viewer: "TestClient", runs: Path) -> None:
    folder = made(runs, RUN, origin=NIGHTLY)
    (folder.root / "brokers" / "1").mkdir(parents=True)
    (folder.root / "brokers" / "1" / "broker.log").write_text("started", encoding="utf-8")
    folder.cluster.mkdir()
    (folder.cluster / "secret").write_text("x", encoding="utf-8")
    (folder.root / "out").symlink_to("/etc/hostname")
    answer = viewer.get(f"/kafka-chaos/runs/{RUN}/archive")
    assert answer.headers["content-disposition"] == f'attachment; filename="{RUN}.zip"'
    with zipfile.ZipFile(io.BytesIO(answer.content)) as packed:
        names = packed.namelist()
        assert packed.read(f"{RUN}/brokers/1/broker.log") == b"started"
    assert f"{RUN}/verdict.json" in names
    assert [name for name in names if "secret" in name or name.endswith("/out")] == []


GOOD, BAD = {"system": PASS}, {"system": FAIL}


@pytest.mark.parametrize(
    ("shown", "others", "beside"),
    [
        pytest.param(("20", 7, BAD), [("18", 7, GOOD), ("19", 7, GOOD), ("21", 7, GOOD)], "19", id="last good before"),
        pytest.param(("18", 7, GOOD), [("19", 7, BAD), ("20", 7, BAD), ("17", 7, BAD)], "19", id="first bad after"),
        pytest.param(("20", 7, BAD), [("18", 7, GOOD), ("19", 8, GOOD)], "18", id="rather of the same seed"),
        pytest.param(("20", 7, BAD), [("19", 8, GOOD)], "19", id="of another seed, if there is no other"),
        pytest.param(("20", 7, BAD), [("19", 7, GOOD | {"driver": "docker"})], "", id="never of another driver"),
        pytest.param(("18", 7, GOOD), [("19", 7, {"system": UNKNOWN})], "", id="an inconclusive run is not bad"),
    ],
)
def test_the_page_of_a_run_leads_to_the_comparison_that_explains_it(
    viewer: "TestClient",
    runs: Path,
    shown: tuple[str, int, dict[str, Any]],
    others: list[tuple[str, int, dict[str, Any]]],
    beside: str,
) -> None:
    names = [f"smoke-202611{day}T020000-{seed:08x}" for day, seed, _ in (shown, *others)]
    for name, (_, _, changes) in zip(names, (shown, *others), strict=True):
        made(runs, name, **changes)
    page = viewer.get(f"/kafka-chaos/runs/{names[0]}").text
    found = re.search(r'href="(/kafka-chaos/compare[^"]+)"', page)
    assert (found is not None) == bool(beside)
    if found:
        assert f"smoke-202611{beside}T" in found[1]
        assert viewer.get(html.unescape(found[1])).status_code == 200


@pytest.mark.parametrize(
    ("query", "text"),
    [
        pytest.param("", "Two to 8 runs can be compared, not 0", id="no run is ticked"),
        pytest.param("run=smoke-20261118T020000-00000007", "Two to 8 runs can be compared, not 1", id="one run"),
        pytest.param("run=smoke-20261118T020000-00000007&run=nothing", "no run nothing", id="a run that is not there"),
    ],
)
def test_runs_that_cannot_be_compared_are_refused_with_the_reason(
    viewer: "TestClient", runs: Path, query: str, text: str
) -> None:
    made(runs, "smoke-20261118T020000-00000007")
    answer = viewer.get(f"/kafka-chaos/compare?{query}")
    assert answer.status_code == 404
    assert text in answer.text
