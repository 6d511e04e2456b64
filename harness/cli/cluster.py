"""`chaos cluster`: a cluster that runs until it is stopped, for a person or an outside client."""

import asyncio
import json
import shlex
import shutil
from collections.abc import Coroutine
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli.options import Json, PlantedBugs, folder_to_make
from harness.errors import ClusterError, ScenarioError

if TYPE_CHECKING:
    from harness.cluster.driver import ClusterDriver, ClusterStatus

app = typer.Typer(
    name="cluster", help="Start a cluster that keeps running, inspect it and disturb it.", no_args_is_help=True
)

DEFAULT_FOLDER = Path(".chaos-cluster")
RUN_ID = "chaos-cluster"

Folder = Annotated[
    Path,
    typer.Option("--dir", callback=folder_to_make, help="Folder of the cluster: its configuration, data and logs."),
]
BrokerId = Annotated[int, typer.Argument(metavar="ID", help="Broker id, as `chaos cluster status` shows it.")]


@app.command(epilog="Example: chaos cluster up --brokers 3 --property min.insync.replicas=2")
def up(
    brokers: Annotated[int, typer.Option(min=1, max=32, help="Number of brokers.")] = 3,
    properties: Annotated[
        list[str] | None, typer.Option("--property", metavar="KEY=VALUE", help="A Kafka broker property; repeatable.")
    ] = None,
    planted_bugs: PlantedBugs = None,
    zookeeper_servers: Annotated[
        int, typer.Option("--zookeeper-servers", metavar="1|3", help="One server, or an ensemble of three.")
    ] = 1,
    metrics: Annotated[bool, typer.Option("--metrics", help="Serve each broker's metrics for Prometheus.")] = False,
    driver: Annotated[
        str, typer.Option("--driver", help="Cluster driver; `chaos list drivers` names them.")
    ] = "process",
    folder: Folder = DEFAULT_FOLDER,
    as_json: Json = False,
) -> None:
    """Start a cluster and return when clients can use it."""
    from harness.cluster.driver import ClusterRequest
    from harness.scenario.capabilities import require_lasting_cluster
    from harness.system.extras import require

    if metrics:
        require("prometheus_client")
    request = ClusterRequest(
        brokers=brokers,
        properties=_properties(properties or []),
        planted_bugs=tuple(planted_bugs or []),
        zookeeper_servers=zookeeper_servers,
        metrics=metrics,
    )
    require_lasting_cluster(driver)
    if _running(folder):
        raise ScenarioError(f"a cluster runs in {folder} already; end it with: {_command('down', folder)}")
    status = _run(_driver(driver, folder.resolve(), RUN_ID).start(request))
    _show(status, as_json=as_json)
    if not as_json:
        typer.echo(f"End it with: {_command('down', folder)}")


@app.command(epilog="Example: chaos cluster status --json")
def status(folder: Folder = DEFAULT_FOLDER, as_json: Json = False) -> None:
    """Show addresses, and the state, process and files of each broker."""
    _show(_run(_attach(folder).status()), as_json=as_json)


@app.command(epilog="Example: chaos cluster groups --json")
def groups(folder: Folder = DEFAULT_FOLDER, as_json: Json = False) -> None:
    """Show consumer groups: state, coordinator, members, and lag for each partition."""
    from harness.system.extras import require

    require("confluent_kafka")
    from harness.experiment.groups import groups_of, lines_of

    listed = groups_of(_run(_attach(folder).status()).bootstrap_servers)
    if as_json:
        typer.echo(json.dumps([group.as_dict() for group in listed], indent=2))
    else:
        typer.echo("\n".join(lines_of(listed)) or "no groups")


@app.command(epilog="Example: chaos cluster transactions --json")
def transactions(folder: Folder = DEFAULT_FOLDER, as_json: Json = False) -> None:
    """Show transactional ids: state, coordinator, producer, and the partitions of what is open."""
    from harness.experiment.transactions import lines_of, transactions_of

    listed = transactions_of(_run(_attach(folder).status()).bootstrap_servers)
    if as_json:
        typer.echo(json.dumps([each.as_dict() for each in listed], indent=2))
    else:
        typer.echo("\n".join(lines_of(listed)) or "no transactions")


@app.command(epilog="Example: chaos cluster down")
def down(
    folder: Folder = DEFAULT_FOLDER,
    keep_data: Annotated[bool, typer.Option("--keep-data", help="Keep configuration, data and logs.")] = False,
) -> None:
    """Stop the cluster in any state and remove everything that it created."""
    from harness.cluster.layout import ClusterLayout

    try:
        layout = ClusterLayout.load(folder.resolve())
    except ClusterError as error:
        raise ScenarioError(str(error)) from error
    driver = _driver(layout.driver, layout.root, layout.run_id)
    for missing in _run(driver.copy_data()) if keep_data else []:
        typer.echo(missing, err=True)
    _run(driver.stop())
    left = _run(driver.residue())
    if left:
        raise ClusterError("; ".join(left))
    if not keep_data:
        _remove(layout.root)


@app.command(epilog="Example: chaos cluster start 1")
def start(broker_id: BrokerId, folder: Folder = DEFAULT_FOLDER) -> None:
    """Start a stopped broker with its data; return when it is registered again."""
    _run(_attach(folder, broker_id).start_broker(broker_id))


@app.command(epilog="Example: chaos cluster stop 1 --timeout 10")
def stop(
    broker_id: BrokerId,
    timeout_s: Annotated[float, typer.Option("--timeout", min=0, help="Seconds to wait for its end.")] = 30.0,
    folder: Folder = DEFAULT_FOLDER,
) -> None:
    """Shut a broker down cleanly (SIGTERM): it hands its partitions over first."""
    _run(_attach(folder, broker_id).stop_broker(broker_id, timeout_s=timeout_s))


@app.command(epilog="Example: chaos cluster kill 1")
def kill(broker_id: BrokerId, folder: Folder = DEFAULT_FOLDER) -> None:
    """Kill a broker (SIGKILL)."""
    _run(_able("kill", folder, broker_id).kill_broker(broker_id))


@app.command(epilog="Example: chaos cluster pause 1 --at-most 20")
def pause(
    broker_id: BrokerId,
    at_most_s: Annotated[float, typer.Option("--at-most", min=0.001, help="Seconds until it is resumed.")] = 60.0,
    folder: Folder = DEFAULT_FOLDER,
) -> None:
    """Pause a broker (SIGSTOP) until `resume` or for at most `--at-most` seconds."""
    _run(_able("pause", folder, broker_id).pause_broker(broker_id, at_most_s=at_most_s))


@app.command(epilog="Example: chaos cluster resume 1")
def resume(broker_id: BrokerId, folder: Folder = DEFAULT_FOLDER) -> None:
    """Resume a paused broker (SIGCONT)."""
    _run(_able("pause", folder, broker_id).resume_broker(broker_id))


def _run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


@app.command(epilog="Example: chaos cluster check my-cluster.yaml")
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A cluster file.")],
    as_json: Json = False,
) -> None:
    """Try each address, credential and command of a cluster file without changing anything, and list what is judged."""
    from harness.experiment.cluster_check import scenario_on, tried
    from harness.judging.needs import names_by_reason
    from harness.progress import number_of
    from harness.scenario.external import place_of
    from harness.system.extras import require

    require("confluent_kafka")
    scenario = scenario_on(file)
    place = place_of(scenario)
    assert place is not None, "a cluster file names one"
    seen, judged = _run(tried(place)), names_by_reason(scenario)
    if as_json:
        typer.echo(json.dumps({"tried": [asdict(each) for each in seen], "judged": judged}, indent=2))
    else:
        for each in seen:
            typer.echo(f"{'ok' if not each.problem else 'FAILED':<7} {each.what}: {each.problem or each.seen}")
        for reason, checks in judged.items():
            typer.echo(f"{number_of(len(checks), 'check')} {reason.removeprefix('are ')}: {', '.join(checks)}")
    if failed := [each for each in seen if each.problem]:
        raise ClusterError(f"{len(failed)} of {len(seen)} failed")


def _driver(name: str, root: Path, run_id: str) -> "ClusterDriver":
    from harness.contracts import registry

    driver: ClusterDriver = registry.driver_class(name)(root, run_id)
    return driver


def _attach(folder: Path, broker_id: int | None = None) -> "ClusterDriver":
    """Return the driver of the cluster that runs in a folder; ScenarioError if none does, or it lacks that broker."""
    from harness.cluster.layout import ClusterLayout

    if not _running(folder):
        raise ScenarioError(f"no cluster runs in {folder}; start one with: {_command('up', folder)}")
    layout = ClusterLayout.load(folder.resolve())
    ids = (*layout.brokers, *layout.quorum)
    if broker_id is not None and broker_id not in ids:
        raise ScenarioError(f"no broker {broker_id}; there are: {', '.join(map(str, ids))}")
    return _driver(layout.driver, layout.root, layout.run_id)


def _able(capability: str, folder: Path, broker_id: int) -> Any:
    """Return the driver of the cluster in a folder with a capability; ScenarioError if it lacks it or that broker."""
    from harness.cluster.driver import CAPABILITIES

    driver = _attach(folder, broker_id)
    if not isinstance(driver, CAPABILITIES[capability]):
        raise ScenarioError(f"the driver {driver.name} cannot {capability} brokers")
    return driver


def _running(folder: Path) -> bool:
    from harness.cluster.supervision.client import SupervisorGone, call
    from harness.store.folder import RunFolder

    try:
        _run(call(RunFolder(folder.resolve()).cluster, "status"))
    except SupervisorGone:
        return False
    return True


def _remove(root: Path) -> None:
    """Remove the files of a cluster, and its folder too if that is empty then."""
    from harness.store.folder import RunFolder

    for made in (RunFolder(root).cluster, RunFolder(root).brokers):
        shutil.rmtree(made, ignore_errors=True)
    if not any(root.iterdir()):
        root.rmdir()


def _command(name: str, folder: Path) -> str:
    return f"chaos cluster {name}" + ("" if folder == DEFAULT_FOLDER else f" --dir {shlex.quote(str(folder))}")


def _properties(texts: list[str]) -> dict[str, str]:
    properties = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator or not key:
            raise typer.BadParameter(f"{text!r} is not KEY=VALUE", param_hint="--property")
        properties[key.strip()] = value.strip()
    return properties


def _show(status: "ClusterStatus", *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(status.as_dict(), indent=2))
        return
    typer.echo(f"bootstrap servers  {status.bootstrap_servers}")
    for server in status.zookeeper:
        typer.echo(
            f"zookeeper {server.server_id:<8} {server.client_address}  {server.state:<8} {_pid(server.pid)}"
            f"  log {server.log}"
        )
    for broker in status.brokers:
        typer.echo(
            f"broker {broker.broker_id:<11} {broker.client_address}  {broker.state:<8} {_pid(broker.pid)}"
            f"  log {broker.human_log}" + ("" if broker.metrics_url is None else f"  metrics {broker.metrics_url}")
        )


def _pid(pid: int | None) -> str:
    return "no process" if pid is None else f"pid {pid}"
