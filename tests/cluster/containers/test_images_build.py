"""Building against an engine that is a fake: what is asked of it, what is skipped, what is left after trouble."""

import io
import json
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from harness.cli.images import app
from harness.cluster.containers import base, building, images
from harness.cluster.containers.engine import Engine, EngineUnavailable
from harness.cluster.containers.image_store import ImageStore
from harness.cluster.containers.wheelhouse import Platform
from harness.errors import ClusterError, Interrupted
from tests.raising import raising

BROKER, JAVA, RELAY = images.broker().name, images.java().name, images.relay().name
STEP = {"stream": "Step 1/2 : RUN x\n ---> Running in 0123456789ab\n"}


class FakeApi:
    """An engine's images, and builds that say what the test wants."""

    def __init__(self) -> None:
        self.stored: dict[str, dict[str, str]] = {}
        self.built: list[dict[str, Any]] = []
        self.contexts: list[list[str]] = []
        self.output: list[dict[str, str]] = [STEP]
        self.interrupted = False
        self.removed: list[str] = []
        self.pulled: list[str] = []
        self.registry = False
        self.imported: list[str] = []
        self.answer_to_import = '{"status": "sha256:0123"}\r\n'

    def images(self, name: str | None = None, quiet: bool = False, filters: Any = None) -> list[Any]:
        filters = filters or {}
        if filters.get("dangling"):
            return ["sha256:0123456789abff", "sha256:ffffffffffffff"]
        matches = {n: labels for n, labels in self.stored.items() if name in (None, n)}
        if quiet:
            return [f"id of {n}" for n in matches]
        ours = {n: labels for n, labels in matches.items() if images.LABEL in labels}
        return [
            {"Id": f"id of {n}", "RepoTags": [n], "Labels": labels, "Size": 5_000_000, "Created": 0}
            for n, labels in ours.items()
        ]

    def build(self, *, fileobj: io.BytesIO, tag: str, labels: dict[str, str], **options: Any) -> Iterator[Any]:
        with tarfile.open(fileobj=fileobj) as tar:
            self.contexts.append(tar.getnames())
        self.built.append({"tag": tag, **options})
        yield from self.output
        if self.interrupted:
            raise KeyboardInterrupt
        self.stored[tag] = {images.LABEL: "1", **labels}

    def import_image(self, archive: str, repository: str, tag: str, changes: list[str]) -> str:
        self.imported.append(f"{repository}:{tag} {changes}")
        return self.answer_to_import

    def remove_container(self, id_: str, force: bool) -> None:
        self.removed.append(id_)

    def remove_image(self, name: str) -> None:
        self.removed.append(name)
        self.stored.pop(name, None)

    def inspect_distribution(self, name: str) -> None:
        from docker.errors import APIError

        if not self.registry:
            raise APIError("no", explanation="no such host")

    def pull(self, repository: str, tag: str, **_: Any) -> Iterator[Any]:
        self.pulled.append(f"{repository}:{tag}")
        self.stored[f"{repository}:{tag}"] = {}
        yield {"status": "Downloading"}


class FakeEngine(Engine):
    """An engine whose client has the fake API."""

    def __init__(self, api: FakeApi) -> None:
        self.api = api
        self.client = type("Client", (), {"api": api, "close": lambda _: None})()


class Steps:
    """Collects a build's progress."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def started(self, step: str, detail: str) -> None:
        self.lines.append(f"{step}: {detail}")

    def line(self, text: str) -> None:
        self.lines.append(text)

    def finished(self, step: str, result: str) -> None:
        self.lines.append(f"{step}: {result}")


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeApi:
    """A fake engine that everything connects to; bases are made and wheels matches without work."""
    api = FakeApi()
    wheel = tmp_path / "kazoo-1-py3-none-any.whl"
    wheel.touch()
    monkeypatch.setattr(Engine, "connect", lambda **_: FakeEngine(api))
    monkeypatch.setattr(base, "_make", lambda store, name, log: api.stored.update({name: {images.LABEL: "1"}}))
    monkeypatch.setattr(base, "platform_of", lambda store, name: Platform(python="3.11", machine="x86_64"))
    monkeypatch.setattr(building, "wheels", lambda cache, requirements, platform: [wheel])
    return api


def build(api: FakeApi, **options: Any) -> list[str]:
    return [one.part for one in building.build(FakeEngine(api), Steps(), **options) if one.rebuilt]


def test_from_nothing_all_is_built_on_a_base_made_here(api: FakeApi) -> None:
    assert build(api) == ["broker", "java", "relay"]
    assert [(one["tag"], one["buildargs"]) for one in api.built] == [
        (BROKER, {"BASE_IMAGE": images.base_name()}),
        (JAVA, {"BASE_IMAGE": images.base_name()}),
        (RELAY, {"BASE_IMAGE": images.base_name()}),
    ]


def test_where_a_registry_answers_the_official_image_is_the_base(api: FakeApi) -> None:
    api.registry = True
    build(api)
    assert api.pulled == [base.DEFAULT_BASE_IMAGE]
    assert api.stored[BROKER][images.BASE_LABEL] == base.DEFAULT_BASE_IMAGE


def test_what_is_there_is_not_built_again(api: FakeApi) -> None:
    build(api)
    assert build(api) == []
    del api.stored[JAVA]
    assert build(api) == ["java"]


def test_another_base_builds_all_again_and_the_same_one_does_not(api: FakeApi) -> None:
    build(api)
    assert build(api, base_image="other:1") == ["broker", "java", "relay"]
    assert build(api, base_image="other:1") == []
    assert api.pulled == ["other:1"]


def test_rebuild_uses_nothing_that_is_there(api: FakeApi) -> None:
    build(api)
    assert build(api, rebuild=True) == ["broker", "java", "relay"]
    assert [one["nocache"] for one in api.built] == [False, False, False, True, True, True]


def test_contexts_hold_what_goes_in_and_nothing_else(api: FakeApi) -> None:
    build(api)
    broker, java, relay = (set(names) for names in api.contexts)
    assert {name for name in broker if not name.startswith("harness/broker/")} == {
        "Dockerfile",
        "requirements.txt",
        "wheels/kazoo-1-py3-none-any.whl",
        "harness/__init__.py",
        "harness/cluster/__init__.py",
        "harness/cluster/disks/__init__.py",
        "harness/cluster/disks/ballast.py",
        "harness/cluster/limits/__init__.py",
        "harness/cluster/limits/descriptors.py",
        "harness/cluster/limits/pressure.py",
        "harness/events.py",
        "harness/properties_file.py",
        "harness/system/__init__.py",
        "harness/system/chain.py",
        "harness/values.py",
    }
    assert {Path(name).suffix for name in broker if name.startswith("harness/")} == {".py", ".json"}
    assert relay == {"Dockerfile", *(f"harness/{name}" for name in images.RELAY)}
    assert {name for name in java if not name.startswith("jars/")} == {"Dockerfile"}
    assert any(name.startswith("jars/zookeeper-3") for name in java)


def test_a_failed_step_is_shown_with_the_end_of_its_output_and_cleaned_up(api: FakeApi) -> None:
    api.output = [STEP, {"stream": "E: no such package\n"}, {"error": "returned a non-zero code: 100"}]
    with pytest.raises(ClusterError, match=r"(?s)building kafka-chaos-broker:\w+: returned .* 100\n.*E: no such pack"):
        build(api)
    assert api.removed == ["0123456789ab", "sha256:0123456789abff"]
    assert BROKER not in api.stored


def test_an_interrupt_leaves_nothing_of_the_build(api: FakeApi) -> None:
    api.interrupted = True
    with pytest.raises(KeyboardInterrupt):
        build(api)
    assert api.removed == ["0123456789ab", "sha256:0123456789abff"]


def test_without_registry_and_debootstrap_both_are_named(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        base, "_make", raising(ClusterError("no base could be made here:\ndebootstrap is not installed"))
    )
    with pytest.raises(ClusterError, match=r"(?s)no such host.*debootstrap is not installed"):
        build(api)


def test_a_requested_base_is_never_replaced(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> Iterator[Any]:
        yield {"error": "pull access denied"}

    monkeypatch.setattr(api, "pull", refuse)
    with pytest.raises(ClusterError, match=r"pulling other:1: pull access denied"):
        build(api, base_image="other:1")
    assert api.built == []


def test_an_archive_that_the_engine_cannot_store_is_an_error(api: FakeApi) -> None:
    store = ImageStore(FakeEngine(api))
    store.import_tar("base.tar", "kafka-chaos-base:1")
    assert api.imported == [f"kafka-chaos-base:1 ['LABEL {images.LABEL}=1']"]
    api.answer_to_import = '{"status": "x"}\r\n{"error": "no space left on device"}\r\n'
    with pytest.raises(ClusterError, match="importing kafka-chaos-base:1: no space left on device"):
        store.import_tar("base.tar", "kafka-chaos-base:1")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        pytest.param("3.9 x86_64 glibc 2.31", r"has 3\.9 .*needs Python 3\.11, 3\.12, 3\.13 on glibc", id="too old"),
        pytest.param("3.12 x86_64", r"needs Python .* on glibc", id="another C library"),
    ],
)
def test_a_base_with_another_python_is_refused(answer: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = ImageStore(FakeEngine(FakeApi()))
    monkeypatch.setattr(store, "run", lambda image, command: answer)
    with pytest.raises(ClusterError, match=message):
        base.platform_of(store, "some:1")


def test_too_little_room_for_a_base_is_an_error_before_any_download(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(base, "ROOM_BYTES", 2**62)
    monkeypatch.setattr(base, "run_script", lambda *_: pytest.fail("the script was started"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(ClusterError, match=r"has \d+ MB free and it takes \d+; set TMPDIR"):
        base._make(ImageStore(FakeEngine(FakeApi())), "kafka-chaos-base:1", lambda line: None)
    assert list(tmp_path.iterdir()) == []


def script(folder: Path, text: str) -> list[str]:
    path = folder / "script.sh"
    path.write_text(text, encoding="utf-8")
    return ["sh", str(path)]


def test_a_script_that_fails_is_quoted(tmp_path: Path) -> None:
    command = script(tmp_path, "echo archive; echo debootstrap is not installed >&2; exit 4")
    with pytest.raises(ClusterError, match="no base could be made here:\ndebootstrap is not installed"):
        base.run_script(command, tmp_path / "out", tmp_path, lambda line: None)


def test_a_script_ends_and_cleans_up_when_we_are_interrupted(tmp_path: Path) -> None:
    text = """
        trap 'rm $TMPDIR/half' EXIT
        trap 'exit 143' TERM
        touch $TMPDIR/half
        sleep 60 &
        echo on >&2
        wait
    """
    command = script(tmp_path, text)

    def interrupt(line: str) -> None:
        assert (tmp_path / "half").exists()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        base.run_script(command, tmp_path / "out", tmp_path, interrupt)
    assert not (tmp_path / "half").exists()


@pytest.fixture
def chaos(api: FakeApi) -> Callable[..., Result]:
    """Runs `chaos images COMMAND …`."""
    return lambda *arguments: CliRunner().invoke(app, arguments)


def test_build_says_what_it_does_and_what_it_skips(chaos: Callable[..., Result]) -> None:
    first = chaos("build").output
    assert f"base: {images.base_name()}: made from the distribution's packages" in first
    assert f"broker: built {BROKER}" in first
    assert f"java: unchanged: {JAVA}" in chaos("build").output


def test_json_of_build_names_every_image(chaos: Callable[..., Result]) -> None:
    chaos("build")
    assert json.loads(chaos("build", "--json").stdout) == [
        {"part": "broker", "image": BROKER, "base": images.base_name(), "rebuilt": False},
        {"part": "java", "image": JAVA, "base": images.base_name(), "rebuilt": False},
        {"part": "relay", "image": RELAY, "base": images.base_name(), "rebuilt": False},
    ]


def test_list_tells_current_old_and_missing_apart(api: FakeApi, chaos: Callable[..., Result]) -> None:
    chaos("build")
    api.stored["kafka-chaos-broker:old"] = {images.LABEL: "1", images.BASE_LABEL: "b:1"}
    api.stored["python:3.11"] = {}
    del api.stored[JAVA]
    answer = json.loads(chaos("list", "--json").stdout)
    assert {image["image"]: image["in_use"] for image in answer["images"]} == {
        BROKER: True,
        RELAY: True,
        images.base_name(): True,
        "kafka-chaos-broker:old": False,
    }
    assert answer["missing"] == [JAVA]


def test_remove_takes_ours_alone_and_a_base_last(api: FakeApi, chaos: Callable[..., Result]) -> None:
    api.stored["python:3.11"] = {}
    chaos("build")
    assert chaos("remove").exit_code == 0
    assert api.removed == [BROKER, JAVA, RELAY, images.base_name()]
    assert list(api.stored) == ["python:3.11"]


def test_ctrl_c_is_an_interruption_and_no_verdict(api: FakeApi, chaos: Callable[..., Result]) -> None:
    api.interrupted = True
    assert isinstance(chaos("build").exception, Interrupted)


@pytest.mark.parametrize("command", ["build", "list", "remove"])
def test_without_an_engine_every_command_says_so(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Engine, "connect", raising(EngineUnavailable("no Docker engine answers: no such file")))
    assert isinstance(CliRunner().invoke(app, [command]).exception, EngineUnavailable)
