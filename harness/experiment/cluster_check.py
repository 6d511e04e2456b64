"""Would a run on an existing cluster work? Each address, credential and command is tried; nothing there is changed."""

import asyncio
import json
import shlex
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from harness.cluster import relay
from harness.cluster.external.brokers_logs import described
from harness.cluster.external.commands import PLACEHOLDERS, filled
from harness.cluster.external.configuration import configured_as_assumed
from harness.cluster.external.driver import log_of
from harness.cluster.external.forwards import Forward, listening, not_advertised, setup_of
from harness.cluster.external.place import LOGS, ExternalCluster, taken_by_runs
from harness.cluster.relay.listeners import save
from harness.errors import ClusterError
from harness.experiment.topics import TopicAdmin
from harness.kafka.brokers import described_cluster, listed_brokers
from harness.kafka.security.settings import security_of
from harness.scenario.external import WORKLOAD, claimed
from harness.scenario.file import read_scenario
from harness.scenario.model import Scenario, TopicSpec
from harness.scenario.source import options

TIMEOUT_S = 10.0
CHECK = "check"
TOPIC = "check"
_INTO = "{into}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One thing that a run needs, and whether it works."""

    what: str
    seen: str = ""
    problem: str = ""
    """Empty if it works."""


def scenario_on(file: Path) -> Scenario:
    """Return the least scenario on the cluster that a file describes, with a prefix of its own.

    Raises:
        ScenarioError: it is not a cluster file.
    """
    text = json.dumps(
        {
            "name": "check",
            "description": "Nothing but what the cluster file says",
            "topics": [{"name": "check", "partitions": 1, "replication_factor": 1}],
            "workloads": [{"kind": WORKLOAD}],
        }
    )
    return claimed(read_scenario(text, str(file), options(None, [], [], cluster=str(file))))


async def tried(cluster: ExternalCluster) -> list[Tried]:
    """Return all that was tried of a cluster, in order, with what was seen of each."""
    return [each async for each in _all(cluster)]


async def _all(cluster: ExternalCluster) -> AsyncIterator[Tried]:
    async with AsyncExitStack() as stack:
        for broker_id, forward in sorted(cluster.relay.items()):
            yield await _tried(f"listener {forward.target} of broker {broker_id}", _leads(cluster, broker_id, forward))
        if cluster.relay:
            yield await _tried("relay", _relayed(cluster, stack))
        async for each in _beyond(cluster):
            yield each


async def _beyond(cluster: ExternalCluster) -> AsyncIterator[Tried]:
    """Yield what was tried as clients connect: through the relay, if there is one."""
    addresses: dict[int, str] = {}
    for address in cluster.bootstrap_servers.split(","):
        yield await _tried(f"bootstrap server {address}", _identity(cluster, address, addresses))
    for broker_id, address in sorted(addresses.items()):
        yield await _tried(f"broker {broker_id} at {address}", _serves(cluster, address))
        of_broker = replace(cluster, addresses=addresses).direct(broker_id)
        comparing = configured_as_assumed(cluster, broker_id, of_broker, TIMEOUT_S)
        yield await _tried(f"configuration of broker {broker_id}", comparing)
    keeper = f"ZooKeeper {cluster.zookeeper_connect}" if cluster.zookeeper_connect else "controllers"
    yield await _tried(keeper, _metadata(cluster))
    yield await _tried("topics of a run", _may_create(cluster))
    for action in sorted(cluster.commands):
        every: list[int | None] = [None] if action == "zookeeper" else [*sorted(cluster.hosts)]
        for server in every:
            target = "" if server is None else f" of broker {server}"
            if action == LOGS and server is not None:
                address = "" if server not in addresses else replace(cluster, addresses=addresses).direct(server)
                yield await _tried(f"command {action}{target}", _logs(cluster, server, address))
            else:
                trying = asyncio.to_thread(_command, cluster, action, server)
                yield await _tried(f"command {action}{target}", trying)


async def _tried(what: str, trying: Awaitable[str]) -> Tried:
    try:
        return Tried(what=what, seen=await trying)
    except ClusterError as error:
        return Tried(what=what, problem=str(error))


async def _identity(cluster: ExternalCluster, server: str, addresses: dict[int, str]) -> str:
    security = security_of(cluster.client)
    seen, brokers = await described_cluster([server], timeout_s=TIMEOUT_S, security=security)
    if seen != cluster.cluster_id:
        raise ClusterError(f"it is of the cluster {seen!r}; the file names {cluster.cluster_id!r}")
    if sorted(brokers) != sorted(cluster.hosts):
        raise ClusterError(f"it lists the brokers {sorted(brokers)}; the file names {sorted(cluster.hosts)}")
    addresses.update(brokers)
    return f"{security.described}, brokers {', '.join(map(str, sorted(brokers)))}"


async def _leads(cluster: ExternalCluster, broker_id: int, forward: Forward) -> str:
    """See that the broker's own listener leads its clients through the relay."""
    security = security_of(cluster.client)
    _, advertised = await described_cluster([forward.target], timeout_s=TIMEOUT_S, security=security)
    if problem := not_advertised({broker_id: forward}, advertised):
        raise ClusterError(problem)
    return f"its clients are sent to {forward.listen}"


async def _relayed(cluster: ExternalCluster, stack: AsyncExitStack) -> str:
    """Start a relay, which ends with the stack."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="chaos-check-")))
    save(folder, setup_of(cluster.relay, cluster.relay_listens_on))
    log = folder / "relay.log"
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(sys.executable, "-m", relay.__name__, str(folder), stderr=out)

    async def end() -> None:
        if process.returncode is None:
            process.terminate()
        await process.wait()

    async def ended() -> bool:
        return process.returncode is not None

    stack.push_async_callback(end)
    await listening(folder, log, ended)
    return f"listens at {', '.join(forward.listen for forward in cluster.relay.values())}, for as long as this takes"


async def _serves(cluster: ExternalCluster, address: str) -> str:
    host, _, port = address.rpartition(":")
    await listed_brokers(host, int(port), timeout_s=TIMEOUT_S, security=security_of(cluster.client))
    return "serves metadata"


async def _metadata(cluster: ExternalCluster) -> str:
    async with cluster.view() as view:
        registered, topics = sorted(await view.registrations()), await view.topics()
    if why := taken_by_runs(topics, cluster.prefix):
        raise ClusterError(why)
    if registered != sorted(cluster.hosts):
        raise ClusterError(f"the brokers {registered} are registered; the file names {sorted(cluster.hosts)}")
    return f"brokers {', '.join(map(str, registered))} are registered"


async def _may_create(cluster: ExternalCluster) -> str:
    """Have the cluster validate a topic, which it does not create."""
    topic = TopicSpec(name=cluster.prefix + TOPIC, partitions=1, replication_factor=1)
    problems = await TopicAdmin(cluster.bootstrap_servers, client=cluster.client).create([topic], validate_only=True)
    for problem in problems.values():
        raise ClusterError(f"the client library may not create topics: {problem}")
    return f"the client library may create {topic.name}; none was created"


async def _logs(cluster: ExternalCluster, broker_id: int, address: str) -> str:
    """Copy the logs of a broker, and see whether they show what its release logs."""
    if not address:
        raise ClusterError("the broker is not reached, so its log levels are not known")
    of = await log_of(cluster, broker_id, address)
    with tempfile.TemporaryDirectory(prefix="chaos-check-") as into:
        await asyncio.to_thread(cluster.carry_out, LOGS, broker_id, Path(into))
        return await asyncio.to_thread(described, Path(into), of) + "; the copy was removed"


def _command(cluster: ExternalCluster, action: str, broker_id: int | None) -> str:
    """Carry out a command that only reads; of another one see whether there is such a program."""
    template = cluster.commands[action]
    if action == CHECK:
        cluster.carry_out(action, broker_id)
        return "ended with status 0"
    if _INTO in template:
        with tempfile.TemporaryDirectory(prefix="chaos-check-") as into:
            cluster.carry_out(action, broker_id, Path(into))
            size = sum(file.lstat().st_size for file in Path(into).rglob("*") if file.is_file())
        if not size:
            raise ClusterError("it copied nothing")
        return f"brought {size:,} bytes copied, and removed"
    program = filled(template, dict.fromkeys(PLACEHOLDERS, "x"))[0]
    if shutil.which(program) is None:
        raise ClusterError(f"there is no program {shlex.quote(program)} here")
    return f"not carried out; the program {program} exists"
