import ast
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.cluster import embedded_zookeeper
from harness.cluster.containers import base, images
from harness.errors import ClusterError

Change = Callable[[Path], object]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small checkout, with a PySpark of its own."""
    for name in (
        *(f"harness/{name}" for name in (*images.SHARED, *images.RELAY)),
        "harness/cli/app.py",
        "harness/broker/wire/codec.py",
    ):
        write(tmp_path / name, name)
    write(tmp_path / "harness/broker/wire/specs/Fetch.json", "{}")
    write(tmp_path / "requirements.txt", requirements("1.0"))
    write(tmp_path / "pyspark/jars/zookeeper-3.9.4.jar", "jar")
    shutil.copytree(images.CHECKOUT / "docker", tmp_path / "docker")
    monkeypatch.setattr(
        embedded_zookeeper, "jars", lambda: sorted((tmp_path / "pyspark" / "jars").glob("*.jar"), reverse=True)[:1]
    )
    return tmp_path


def requirements(kazoo: str, other: str = "1.0") -> str:
    versions = dict.fromkeys(images.BROKER_PACKAGES, "1.0") | {"kazoo": kazoo, "kazoo-extra": other, "pyspark": other}
    return "".join(
        f"{name}=={version} \\\n    --hash=sha256:{name}{version} \\\n    --hash=sha256:b\n    # via another\n"
        for name, version in versions.items()
    )


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def append(name: str) -> Change:
    return lambda checkout: write(checkout / name, (checkout / name).read_text() + "\n# changed")


def put(name: str, text: str) -> Change:
    return lambda checkout: write(checkout / name, text)


BROKER, JAVA, RELAY = {"broker"}, {"java"}, {"relay"}


@pytest.mark.parametrize(
    ("change", "changed"),
    [
        pytest.param(lambda _: None, set(), id="nothing"),
        pytest.param(append("harness/broker/wire/codec.py"), BROKER, id="a broker's module"),
        pytest.param(append("harness/broker/wire/specs/Fetch.json"), BROKER, id="a message specification"),
        pytest.param(append("harness/events.py"), BROKER, id="the log's schema"),
        pytest.param(put("harness/broker/new.py", ""), BROKER, id="a new, empty module"),
        pytest.param(lambda c: (c / "harness/broker/wire/codec.py").unlink(), BROKER, id="a module that is gone"),
        pytest.param(
            lambda c: (c / "harness/broker/wire/codec.py").rename(c / "harness/broker/codec.py"),
            BROKER,
            id="a module that moved",
        ),
        pytest.param(append("docker/broker.Dockerfile"), BROKER, id="the brokers' Dockerfile"),
        pytest.param(put("requirements.txt", requirements("1.1")), BROKER, id="a package of the broker"),
        pytest.param(append("docker/java.Dockerfile"), JAVA, id="the Dockerfile of what runs on Java"),
        pytest.param(put("pyspark/jars/zookeeper-3.9.5.jar", "jar"), JAVA, id="another version of a jar"),
        pytest.param(put("pyspark/jars/zookeeper-3.9.4.jar", "longer"), JAVA, id="a patched jar"),
        pytest.param(append("docker/relay.Dockerfile"), RELAY, id="the relay's Dockerfile"),
        pytest.param(append("harness/cluster/links/links.py"), RELAY, id="a module of the relay"),
        pytest.param(append("harness/system/__init__.py"), BROKER | RELAY, id="a module of both"),
        pytest.param(append("docker/base.sh"), BROKER | JAVA | RELAY, id="the base"),
        pytest.param(append("harness/cli/app.py"), set(), id="a module that no image has"),
        pytest.param(put("harness/broker/wire/__pycache__/codec.pyc", "x"), set(), id="compiled Python"),
        pytest.param(put("requirements.txt", requirements("1.0", "2.0")), set(), id="a package that the broker lacks"),
        pytest.param(append("docker/compose.yaml"), set(), id="the compose file"),
        pytest.param(append("docker/airflow.Dockerfile"), set(), id="Airflow's Dockerfile"),
    ],
)
def test_a_tag_changes_exactly_when_something_that_goes_in_does(
    checkout: Path, change: Change, changed: set[str]
) -> None:
    def names() -> dict[str, str]:
        every = (images.broker(checkout), images.java(checkout), images.relay(checkout))
        return {image.part: image.name for image in every}

    before = names()
    change(checkout)
    after = names()
    assert {part for part in before if before[part] != after[part]} == changed


def test_names_are_the_same_for_another_copy_of_the_checkout(checkout: Path, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere"
    shutil.copytree(checkout, copy, ignore=shutil.ignore_patterns("elsewhere"))
    assert images.broker(copy).name == images.broker(checkout).name


def test_an_installation_without_the_docker_folder_is_an_error_that_says_so(checkout: Path) -> None:
    shutil.rmtree(checkout / "docker")
    with pytest.raises(ClusterError, match=r"broker\.Dockerfile is missing: images are built from a checkout"):
        images.broker(checkout)


def test_what_the_engine_lacks_is_named() -> None:
    class Half:
        def has_image(self, name: str) -> bool:
            return name.startswith("kafka-chaos-broker:")

    assert images.missing(Half()) == [images.java().name, images.relay().name]


def imports_of_the_broker() -> set[str]:
    """Top-level packages that the broker, and what it imports of the harness, import beside the standard library."""
    imported = set()
    for path in (name for name in images.broker().sources if name.endswith(".py")):
        for node in ast.walk(ast.parse((images.CHECKOUT / path).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                imported.add(node.module)
    return {name for name in imported if name.split(".")[0] not in sys.stdlib_module_names}


def test_the_packages_are_those_that_the_broker_imports() -> None:
    package_of = {
        "cramjam": "cramjam",
        "crc32c": "crc32c",
        "kafka": "kafka-python",
        "kazoo": "kazoo",
        "msgspec": "msgspec",
        "prometheus_client": "prometheus-client",
    }
    foreign = {name.split(".")[0] for name in imports_of_the_broker()} - {"harness"}
    assert {package_of[name] for name in foreign} == set(images.BROKER_PACKAGES)


def test_the_context_has_every_module_of_the_harness_that_the_broker_imports() -> None:
    sources = images.broker().sources
    ours = {name.replace(".", "/") for name in imports_of_the_broker() if name.startswith("harness")}
    assert ours
    assert [name for name in ours if not {f"{name}.py", f"{name}/__init__.py"} & set(sources)] == []


def test_the_relay_consists_of_what_it_imports() -> None:
    modules = (
        "import sys, harness.cluster.relay.__main__; print(*(m.__file__ for m in sys.modules.values() if m.__name__"
    )
    program = f"{modules}.startswith('harness')))"
    output = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    imported = {Path(path).relative_to(images.CHECKOUT).as_posix() for path in output.split()}
    assert imported == {f"harness/{name}" for name in images.RELAY}


def test_every_dockerfile_stands_on_the_same_base() -> None:
    for dockerfile in (images.CHECKOUT / "docker").glob("*.Dockerfile"):
        lines = dockerfile.read_text(encoding="utf-8").splitlines()
        assert f"ARG BASE_IMAGE={base.DEFAULT_BASE_IMAGE}" in lines, dockerfile.name
        assert {line for line in lines if line.startswith("FROM")} == {"FROM ${BASE_IMAGE}"}, dockerfile.name
