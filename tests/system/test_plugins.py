import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.analysis.check_helpers.disturbances import harmless
from harness.analysis.check_helpers.excuses import forfeiting
from harness.contracts import registry
from harness.contracts.faults import Disturbance
from harness.contracts.registry import Kind
from harness.errors import PluginError, ScenarioError
from harness.scenario.catalogue import broken, entries
from harness.scenario.file import load_scenario
from harness.system import plugins
from harness.system.plugin_shipment import shipment, use_shipped

FAULT = '"""Does {name}."""\nclass PLUGIN:\n    name = "{name}"\n'
CHECK = '"""{name}: it holds."""\nclass PLUGIN:\n    name = "{name}"\n    title = "{name}"\n'
Install = Callable[..., Path]


@pytest.fixture(autouse=True)
def _found_anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever a test installs is gone after it."""
    monkeypatch.setenv(plugins.FOLDERS, "")
    modules = set(sys.modules)
    plugins.refresh()
    yield
    monkeypatch.undo()
    plugins.refresh()
    for name in set(sys.modules) - modules:
        if name.startswith(("odd", "acme", "chaos_plugins")):
            del sys.modules[name]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put a distribution into the path, with files and entry points `group: value`."""

    def installed(name: str, files: dict[str, str], points: dict[str, str]) -> Path:
        root = tmp_path / name
        for place, text in files.items():
            (root / place).parent.mkdir(parents=True, exist_ok=True)
            (root / place).write_text(text, encoding="utf-8")
        info = root / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
        lines = [f"[kafka_chaos.{group}]\n{value}\n" for group, value in points.items()]
        (info / "entry_points.txt").write_text("".join(lines), encoding="utf-8")
        monkeypatch.syspath_prepend(root)
        plugins.refresh()
        return root

    return installed


def folder_of(root: Path, **files: str) -> Path:
    for name, text in files.items():
        kind, _, stem = name.partition("_")
        (root / kind).mkdir(parents=True, exist_ok=True)
        (root / kind / f"{stem}.py").write_text(text, encoding="utf-8")
    return root


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("acme = acme_faults", id="a package, each of whose modules is one"),
        pytest.param("nap = acme_faults.nap", id="a module that declares it"),
        pytest.param("nap = acme_faults.nap:PLUGIN", id="a class"),
    ],
)
def test_a_distribution_names_its_plugins_by(install: Install, value: str) -> None:
    files = {"acme_faults/__init__.py": "", "acme_faults/nap.py": FAULT.format(name="nap")}
    install("acme-chaos", files, {"faults": value})
    assert registry.fault("nap").name == "nap"
    assert "nap" not in harmless(Disturbance.DISKS), "one that does not say may disturb everything"
    assert "nap" not in forfeiting()
    assert str(registry.provider_of(Kind.FAULT, "nap")) == "acme-chaos 1.0"
    (entry,) = [each for each in entries("faults") if each.provider]
    assert (entry.name, entry.summary, entry.provider) == ("nap", "Does nap.", "acme-chaos 1.0")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        pytest.param("1/0", "cannot be imported: ZeroDivisionError", id="it breaks when imported"),
        pytest.param("", "its last line must declare PLUGIN, a class", id="it declares nothing"),
        pytest.param("PLUGIN = 7", "its last line must declare PLUGIN, a class", id="it declares no class"),
        pytest.param("class PLUGIN:\n    name = 'else'", "PLUGIN.name is 'else', and must be 'odd'", id="another name"),
        pytest.param(
            "from kafka_chaos.api.faults import Fault\nclass PLUGIN(Fault):\n    name = 'odd'",
            "PLUGIN must define confirm, heal, inject",
            id="a fault that does nothing",
        ),
    ],
)
def test_a_broken_plugin_is_one_error_with_its_distribution_and_module(
    install: Install, code: str, message: str
) -> None:
    install("acme-chaos", {"oddities/__init__.py": "", "oddities/odd.py": code}, {"faults": "acme = oddities"})
    with pytest.raises(PluginError) as refused:
        registry.fault("odd")
    assert message in str(refused.value)
    assert "oddities.odd of acme-chaos 1.0" in str(refused.value)
    assert {"kill", "pause"} <= registry.faults().keys() - {"odd"}, "the others can be used"
    assert {"kill", "odd"} <= {entry.name for entry in entries("faults")}, "a list imports none"


@pytest.mark.parametrize(
    ("package", "value", "message"),
    [
        pytest.param("1/0", "acme = oddpackage.faults", "ZeroDivisionError", id="its package breaks"),
        pytest.param("", "acme = oddpackage.gone", "there is no module oddpackage.gone", id="its module is not there"),
    ],
)
def test_what_cannot_be_read_is_said_and_breaks_no_list(
    install: Install, package: str, value: str, message: str
) -> None:
    install("acme-chaos", {"oddpackage/__init__.py": package}, {"faults": value})
    (sentence,) = broken("faults")
    assert sentence.startswith("acme-chaos 1.0: oddpackage.")
    assert message in sentence
    assert "kill" in {entry.name for entry in entries("faults")}
    with pytest.raises(PluginError, match=r"unknown fault 'nap'.*acme-chaos 1\.0"):
        registry.fault("nap")


def test_a_driver_that_cannot_be_imported_is_left_out_of_the_list(install: Install) -> None:
    install("acme-chaos", {"oddriver.py": "1/0"}, {"drivers": "odd = oddriver:Driver"})
    assert "odd" not in {entry.name for entry in entries("drivers")}
    assert broken("drivers") == ["oddriver of acme-chaos 1.0 cannot be imported: ZeroDivisionError: division by zero"]


def test_two_plugins_of_one_name_are_refused_with_both(install: Install) -> None:
    install("acme-chaos", {"acme_faults/__init__.py": "", "acme_faults/kill.py": FAULT.format(name="kill")}, {
        "faults": "acme = acme_faults"
    })  # fmt: skip
    with pytest.raises(PluginError) as refused:
        registry.fault("kill")
    assert "acme_faults.kill of acme-chaos 1.0" in str(refused.value)
    assert "kafka_chaos.faults.kill of kafka-chaos-harness" in str(refused.value)
    assert broken("faults") == [str(refused.value)]


@pytest.mark.parametrize(
    "copied", [pytest.param(False, id="the same"), pytest.param(True, id="a copy, as executors have")]
)
def test_a_package_without_init_brings_each_plugin_once_though_two_of_its_folders_are_in_the_path(
    install: Install, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, copied: bool
) -> None:
    root = install("acme-chaos", {"acme/faults/nap.py": FAULT.format(name="nap")}, {"faults": "acme = acme.faults"})
    if copied:
        root = shutil.copytree(root, tmp_path / "copy")
    monkeypatch.setattr(sys, "path", [str(root), *sys.path])
    plugins.refresh()
    assert registry.fault("nap").name == "nap"


def test_a_folder_brings_plugins_whose_helpers_are_beside_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "from ._shared import NAME\n" + FAULT.format(name="nap").replace('"nap"', "NAME")
    folder = folder_of(tmp_path / "own", faults_nap=code, faults__shared="NAME = 'nap'\n")
    folder_of(folder, checks_ghost=CHECK.format(name="ghost"))
    monkeypatch.setenv(plugins.FOLDERS, os.pathsep.join([str(folder), os.path.relpath(folder)]))
    assert registry.fault("nap").name == "nap"
    assert registry.check("GHOST").name == "ghost"
    provider = registry.provider_of(Kind.CHECK, "ghost")
    assert (provider.name, provider.is_folder) == (str(folder), True)


def test_a_folder_that_is_not_there_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(plugins.FOLDERS, str(tmp_path / "gone"))
    assert broken("checks") == [f"CHAOS_PLUGINS: {tmp_path / 'gone'} cannot be read: there is no such folder"]


@pytest.mark.parametrize("named", [pytest.param(True, id="named"), pytest.param(False, id="found beside its tests")])
def test_the_folder_of_an_installed_package_brings_no_plugin_twice(
    install: Install, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    files = {"acme/__init__.py": "", "acme/faults/nap.py": FAULT.format(name="nap")}
    root = install("acme-chaos", files, {"faults": "acme = acme.faults"})
    if named:
        monkeypatch.setenv(plugins.FOLDERS, str(root / "acme"))
    else:
        plugins.use_folders([root / "acme"])
        assert plugins.folders() == []
    assert str(registry.provider_of(Kind.FAULT, "nap")) == "acme-chaos 1.0"


def test_the_folder_beside_a_scenario_is_used(tmp_path: Path) -> None:
    folder_of(tmp_path / "plugins", faults_nap=FAULT.format(name="nap"))
    (tmp_path / "own.yaml").write_text("name: own\n", encoding="utf-8")
    with pytest.raises(ScenarioError):  # the scenario lacks the rest
        load_scenario(str(tmp_path / "own.yaml"))
    assert registry.known(Kind.FAULT, "nap")


def test_another_machine_finds_the_same_by_what_is_shipped(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"acme_faults/__init__.py": "", "acme_faults/nap.py": FAULT.format(name="nap")}
    install("acme-chaos", files, {"faults": "acme = acme_faults"})
    folder = folder_of(tmp_path / "own", checks_ghost=CHECK.format(name="ghost"))
    monkeypatch.setenv(plugins.FOLDERS, str(folder))
    there = tmp_path / "there"
    for place, content in shipment():
        (there / place).parent.mkdir(parents=True, exist_ok=True)
        (there / place).write_bytes(content.encode() if isinstance(content, str) else content.read_bytes())
    program = (
        f"import sys; sys.path.insert(0, {str(there)!r})\n"
        f"from harness.system.plugin_shipment import use_shipped; use_shipped({str(there)!r})\n"
        "from harness.contracts.registry import Kind, names, provider_of\n"
        "print(names(Kind.FAULT) + names(Kind.CHECK), provider_of(Kind.FAULT, 'nap'), provider_of(Kind.FAULT, 'kill'))"
    )
    env = {"PATH": os.environ["PATH"]}
    said = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, cwd="/", env=env)
    names = registry.names(Kind.FAULT) + registry.names(Kind.CHECK)
    version = registry.provider_of(Kind.FAULT, "kill")
    assert said.stdout.strip() == f"{names} acme-chaos 1.0 {version}"
    use_shipped(str(there))
    assert registry.known(Kind.CHECK, "ghost")
