"""The `external` driver: an existing cluster, started and stopped only by its owner's commands.

Nothing is done before the cluster is identified as the one that the scenario names: its id, as brokers and ZooKeeper
report it, and the exact set of brokers must match. What the run does to it is noted first, and undone by
`stop`, or by a guard when all other processes of the run have died.
"""

import asyncio
import contextlib
import os
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from harness.cluster.containers.data_copy import containers_lock
from harness.cluster.driver import BrokerStatus, ClusterRequest, ClusterStatus, ZookeeperStatus
from harness.cluster.external import restoring
from harness.cluster.external.brokers_logs import LogOf, gather
from harness.cluster.external.client_links import ClientLinks
from harness.cluster.external.configuration import configured_as_assumed
from harness.cluster.external.forwards import not_advertised
from harness.cluster.external.place import (
    CONNECT_TIMEOUT_S,
    CUSTOM,
    LOGS,
    TOUCHED,
    ExternalCluster,
    Notes,
    listens,
    taken_by_runs,
)
from harness.cluster.external.restoring import answers, refuses
from harness.cluster.layout import client_process
from harness.cluster.supervised_driver import without_clients
from harness.cluster.supervision.client_processes import RunsClients
from harness.cluster.supervision.supervision import GONE_TIMEOUT_S, LAST_STAGE, Supervision
from harness.cluster.systems.system import EXTERNAL
from harness.errors import ClusterError
from harness.kafka.brokers import described_cluster, logger_levels
from harness.kafka.security.settings import of_controllers, security_of
from harness.kafka.tcp import explained
from harness.store.folder import RunFolder
from harness.system.process_state import ProcessState
from harness.system.waiting import until

PROBE_TIMEOUT_S = 5.0
ANSWER_TIMEOUT_S = 0.5
"""How long to wait for an answer from a broker that was paused."""
DOWN_TIMEOUT_S = 60.0
ZOOKEEPER_COPY, BROKER_COPY, LOGS_COPY = "zookeeper/data", "brokers/{}/data", "brokers/{}/logs"
"""Where commands copy to, in the cluster's folder."""


class ExternalDriver(ClientLinks, RunsClients):
    """Implements ClusterDriver, CanKill, CanPause and others by commands, and CanRunClients; found by its folder.

    With a relay in front of the brokers it has `LinkCapabilities` too, for links to clients.
    """

    name = "external"
    families: ClassVar[frozenset[str]] = frozenset({EXTERNAL})

    def __init__(self, root: Path, run_id: str) -> None:
        self._root = root
        self._notes = Notes(root)
        self._supervision = Supervision(RunFolder(root).cluster, run_id)

    @classmethod
    def lacks(cls) -> dict[str, str]:
        """Return why no client can be started here, if there is a reason."""
        return without_clients()

    # --- the whole cluster ---

    async def start(self, request: ClusterRequest) -> ClusterStatus:
        """Check that this is the intended cluster, and that it is complete; nothing of it is started.

        Raises:
            ClusterError: it is not, or does not answer; nothing was touched.
        """
        cluster = request.external
        if cluster is None or not cluster.prefix:
            raise ClusterError("no external cluster, or no topic prefix, is given")
        proved = None if cluster.relay else await _proved(cluster)  # else the relay may have to lead there
        owner = request.owner_pid if request.owner_pid is not None else os.getpid()
        await self._supervision.launch(owner)
        try:
            await self._start_relay(cluster)
            cluster = proved or await _proved(cluster)
            cluster.save(self._root)
            await self._spawn(restoring.GUARD, restoring.GUARD, str(self._root.resolve()))
            if request.owner_pid is None:
                await self._supervision.call("disown", expires_after_s=request.expires_after_s)
        except BaseException:
            await self.stop()
            raise
        return await self.status()

    async def status(self) -> ClusterStatus:
        """Return what is seen from here: which brokers take connections, and which of the paused ones answer."""
        cluster = ExternalCluster.load(self._root)
        states = await asyncio.gather(*(self._state(cluster, broker_id) for broker_id in cluster.hosts))
        folder = RunFolder(self._root).cluster
        return ClusterStatus(
            driver=self.name,
            system=EXTERNAL,
            root=self._root,
            bootstrap_servers=cluster.bootstrap_servers,
            zookeeper_connect=cluster.zookeeper_connect,
            zookeeper=_zookeeper(cluster, folder),
            brokers=tuple(
                BrokerStatus(
                    broker_id=broker_id,
                    state=state,
                    pid=None,
                    client_address=cluster.addresses[broker_id],
                    peer_address=cluster.addresses[broker_id],
                    log_dir=folder / BROKER_COPY.format(broker_id),
                    state_change_log=RunFolder(self._root).state_change_log(broker_id),
                    human_log=None,
                    starts=1,
                )
                for broker_id, state in zip(cluster.hosts, states, strict=True)
            ),
            unseen=cluster.unseen,
            prefix=cluster.prefix,
            controllers=cluster.controllers,
            client=cluster.client,
            severed=await self._severed(cluster),
        )

    async def copy_data(self) -> list[str]:
        """Have the commands for evidence bring it here; return a sentence for each that failed."""
        cluster = ExternalCluster.load(self._root)
        status = await self.status()
        folder, missing = RunFolder(self._root).cluster, []
        wanted: list[tuple[str, int | None, Path]] = [("zookeeper", None, each.data_dir) for each in status.zookeeper]
        wanted += [("data", broker.broker_id, broker.log_dir) for broker in status.brokers]
        wanted += [(LOGS, broker_id, folder / LOGS_COPY.format(broker_id)) for broker_id in cluster.hosts]
        for action, broker_id, into in wanted:
            if action not in cluster.commands:
                continue
            await asyncio.to_thread(shutil.rmtree, into, ignore_errors=True)
            into.mkdir(parents=True)
            try:
                await asyncio.to_thread(cluster.carry_out, action, broker_id, into.resolve())
                if action == LOGS and broker_id is not None:
                    missing += await self._gathered(cluster, broker_id, into)
            except ClusterError as error:
                missing.append(str(error))
        return missing

    async def _gathered(self, cluster: ExternalCluster, broker_id: int, copy: Path) -> list[str]:
        """Make the state-change log of a broker from a copy of its logs; raises ClusterError if they do not suffice."""
        out = RunFolder(self._root).state_change_log(broker_id)
        await asyncio.to_thread(out.unlink, missing_ok=True)
        of = await log_of(cluster, broker_id, cluster.direct(broker_id))
        return await asyncio.to_thread(gather, copy, of, out)

    async def stop(self) -> None:
        """Undo what the run did, remove its topics and all copies of data, and end the supervisor; idempotent.

        Raises:
            ClusterError: something could not be undone; all else was.
        """
        left: list[str] = []
        if self._was_begun():  # else nothing was touched
            await self._end_clients()  # one that writes has brokers create its topic again
            try:
                with containers_lock(self._root, restoring.grace_s(ExternalCluster.load(self._root))):
                    left = await restoring.restore(self._root)
            except ClusterError as error:
                left = [str(error)]
        with contextlib.suppress(ClusterError):  # one that does not answer is ended below, and its guard too
            await self._supervision.signal_if_running(restoring.GUARD, "KILL")  # it would do the same again
        await self._supervision.end()
        left += await asyncio.to_thread(self._without_copies)
        if left:
            raise ClusterError("; ".join(left))

    async def residue(self) -> list[str]:
        """Return a sentence for each process and socket of the run, its topics, and brokers in a changed state."""
        left = self._supervision.residue()
        if not self._was_begun():
            return left
        cluster = ExternalCluster.load(self._root)
        try:
            topics = await restoring.topics_of(cluster)
            left += [f"the topic {topic} still exists" for topic in topics]
        except ClusterError as error:
            left.append(f"topics of the run may be left: {error}")
        noted = {broker_id: state for state in ("down", "paused") for broker_id in self._notes.of(state)}
        left += [f"broker {broker_id} is {state}" for broker_id, state in noted.items()]
        left += [f"the fault {name} is in force on broker {broker_id}" for name, broker_id in self._notes.custom()]
        others = sorted(set(self._notes.of(TOUCHED)) - set(noted))
        reachable = await asyncio.gather(*(answers(cluster, broker_id, PROBE_TIMEOUT_S) for broker_id in others))
        silent = [broker_id for broker_id, up in zip(others, reachable, strict=True) if not up]
        return left + [f"broker {broker_id} does not answer" for broker_id in silent]

    def _without_copies(self) -> list[str]:
        """Remove the copies made here, with others' records and configurations; evidence was extracted before."""
        folder, left = RunFolder(self._root).cluster, []
        of_brokers = (copy for each in (BROKER_COPY, LOGS_COPY) for copy in folder.glob(each.format("*")))
        for copy in (folder / ZOOKEEPER_COPY, *of_brokers):
            try:
                shutil.rmtree(copy)
            except FileNotFoundError:
                continue
            except OSError as error:
                left.append(f"the copy {copy} could not be removed: {error.strerror}")
        return left

    async def _end_clients(self) -> None:
        with contextlib.suppress(ClusterError):  # the supervisor's end is the end of all
            clients = [name for name in await self._supervision.children() if name.startswith(client_process(""))]
            for name in clients:
                await self._supervision.signal_if_running(name, "KILL")
            for name in clients:
                await self._supervision.ended(name, GONE_TIMEOUT_S)

    def _was_begun(self) -> bool:
        try:
            ExternalCluster.load(self._root)
        except ClusterError:
            return False
        return True

    # --- one broker ---

    async def kill_broker(self, broker_id: int) -> None:
        """Run the owner's command to kill it; return when it refuses connections and the others accept them."""
        await self._take_down("kill", broker_id, DOWN_TIMEOUT_S)

    async def stop_broker(self, broker_id: int, *, timeout_s: float) -> None:
        """Run the owner's command to stop it; return likewise."""
        await self._take_down("stop", broker_id, timeout_s)

    async def start_broker(self, broker_id: int) -> None:
        """Run the owner's command to start it, once its old registration is gone; return when it serves again."""
        cluster = self._with(broker_id)
        await restoring.started(cluster, self._notes, broker_id)

        async def answering() -> bool:
            return await answers(cluster, broker_id, PROBE_TIMEOUT_S)

        await until(answering, bool, what=f"broker {broker_id} answering", timeout_s=restoring.START_TIMEOUT_S)

    async def pause_broker(self, broker_id: int, *, at_most_s: float) -> None:
        """Run the owner's command to pause it; a child of the supervisor resumes it after `at_most_s` at the latest."""
        cluster, child = self._with(broker_id), f"resume-{broker_id}"
        await self._supervision.signal_if_running(child, "TERM")
        if child in await self._supervision.children():
            await self._supervision.ended(child, cluster.timeout_s)
        self._notes.add("paused", broker_id)
        await self._spawn(child, restoring.RESUME, str(self._root.resolve()), str(broker_id), str(at_most_s))
        await asyncio.to_thread(restoring.paused, cluster, self._notes, broker_id)

    async def resume_broker(self, broker_id: int) -> None:
        """Resume it; no-op if it was not paused."""
        cluster = self._with(broker_id)
        if broker_id in self._notes.of("paused"):
            await restoring.resumed(cluster, self._notes, broker_id)
        await self._supervision.signal_if_running(f"resume-{broker_id}", "TERM")

    async def start_early(self, broker_id: int) -> None:
        """Have it started, whether or not its old registration exists."""
        cluster = self._with(broker_id)
        await asyncio.to_thread(cluster.carry_out, "start", broker_id)
        self._notes.remove("down", broker_id)

    async def bounces_by_command(self) -> bool:
        """Return whether there is a command that has a broker end and start again."""
        return "bounce" in ExternalCluster.load(self._root).commands

    async def bounce_broker(self, broker_id: int) -> None:
        """Have it ended and started again by what manages it."""
        cluster = self._with(broker_id)
        self._notes.add(TOUCHED, broker_id)
        await asyncio.to_thread(cluster.carry_out, "bounce", broker_id)

    # --- faults of the owner's ---

    async def inject_command(self, fault: str, broker_id: int) -> None:
        """Carry out the command that injects."""
        cluster = self._with(broker_id)
        self._notes.add(CUSTOM + fault, broker_id)
        await asyncio.to_thread(cluster.carry_out, f"{fault}.inject", broker_id)

    async def confirm_command(self, fault: str, broker_id: int) -> None:
        """Carry out the command that confirms; raises ClusterError while it fails."""
        await asyncio.to_thread(self._with(broker_id).carry_out, f"{fault}.confirm", broker_id)

    async def heal_command(self, fault: str, broker_id: int) -> None:
        """Carry out the command that heals, if the fault is noted."""
        if broker_id in self._notes.of(CUSTOM + fault):
            await restoring.healed(self._with(broker_id), self._notes, fault, broker_id)

    async def _take_down(self, action: str, broker_id: int, timeout_s: float) -> None:
        cluster = self._with(broker_id)
        others = {id_: cluster.direct(id_) for id_ in cluster.hosts if id_ != broker_id}
        before = {id_ for id_, address in others.items() if await listens(address)}
        self._notes.add("down", broker_id)
        await asyncio.to_thread(cluster.carry_out, action, broker_id)

        address = cluster.direct(broker_id)

        async def there() -> str:
            seen = f"the command for {action} succeeded, and the broker still accepts connections at {address}"
            return seen if await listens(address) else ""

        try:
            await until(there, lambda seen: not seen, what=f"end of broker {broker_id}", timeout_s=timeout_s)
        finally:
            struck = [id_ for id_ in sorted(before) if await refuses(others[id_], CONNECT_TIMEOUT_S)]
            for id_ in struck:
                self._notes.add("down", id_)
        if struck:
            raise ClusterError(f"the command for {action} of broker {broker_id} has ended broker {struck} too")

    async def _state(self, cluster: ExternalCluster, broker_id: int) -> ProcessState:
        address = cluster.direct(broker_id)
        if broker_id in self._notes.of("paused") and not await answers(cluster, broker_id, ANSWER_TIMEOUT_S):
            return ProcessState.STOPPED if await refuses(address, ANSWER_TIMEOUT_S) else ProcessState.PAUSED
        return ProcessState.RUNNING if await listens(address) else ProcessState.STOPPED

    def _with(self, broker_id: int) -> ExternalCluster:
        cluster = ExternalCluster.load(self._root)
        if broker_id not in cluster.hosts:
            raise ClusterError(f"no broker {broker_id}; there are: {', '.join(map(str, cluster.hosts))}")
        return cluster

    async def _spawn(self, child: str, *arguments: str) -> None:
        argv = [sys.executable, "-m", restoring.__name__, *arguments]
        log = RunFolder(self._root).cluster / f"{child}.log"
        grace_s = restoring.grace_s(ExternalCluster.load(self._root))
        await self._supervision.spawn(child, argv, log, LAST_STAGE, grace_s)


async def log_of(cluster: ExternalCluster, broker_id: int, address: str) -> LogOf:
    """Return whose log is read, with the levels that the broker logs at; raises ClusterError if it does not say."""
    host, _, port = address.rpartition(":")
    security = security_of(cluster.client)
    levels = await logger_levels(host, int(port), broker_id, timeout_s=PROBE_TIMEOUT_S, security=security)
    now_ns = time.time_ns()
    return LogOf(
        broker_id=broker_id,
        release=cluster.release,
        levels=levels,
        prefix=cluster.prefix,
        began_ns=cluster.began_ns or now_ns,
        now_ns=now_ns,
    )


def _zookeeper(cluster: ExternalCluster, folder: Path) -> tuple[ZookeeperStatus, ...]:
    """Return its ZooKeeper, as one server; none where it has a quorum."""
    if not cluster.zookeeper_connect:
        return ()
    only = ZookeeperStatus(
        server_id=1,
        state=ProcessState.RUNNING,
        pid=None,
        client_address=cluster.zookeeper_connect,
        data_dir=folder / ZOOKEEPER_COPY,
        log=folder / "zookeeper" / "zookeeper.log",
    )
    return (only,)


async def _proved(cluster: ExternalCluster) -> ExternalCluster:
    """Return the cluster with its brokers' addresses, if it is the intended one, and complete.

    Raises:
        ClusterError: it is not; says what was expected, and what was seen.
    """
    from harness.zookeeper.kazoo_view import KazooView

    security = security_of(cluster.client)
    servers = [each.target for each in cluster.relay.values()] or cluster.bootstrap_servers.split(",")
    seen_id, addresses = await described_cluster(servers, timeout_s=PROBE_TIMEOUT_S, security=security)
    try:
        async with cluster.view() as view:
            in_metadata = await view.cluster_id() if isinstance(view, KazooView) else cluster.cluster_id
            registered = sorted(await view.registrations())
            taken = taken_by_runs(await view.topics(), cluster.prefix)
    except ClusterError as error:
        raise ClusterError(await _explained(cluster, str(error))) from error
    for named, seen in (("the brokers are", seen_id), ("ZooKeeper is", in_metadata)):
        if seen != cluster.cluster_id:
            raise ClusterError(f"{named} of the cluster {seen!r}, and the scenario names {cluster.cluster_id!r}")
    if not sorted(cluster.hosts) == registered == sorted(addresses):
        raise ClusterError(
            f"the scenario names the brokers {sorted(cluster.hosts)}; {sorted(addresses)} serve,"
            f" {registered} are registered"
        )
    if problem := not_advertised(cluster.relay, addresses) or taken:
        raise ClusterError(problem)
    proved = replace(cluster, addresses=addresses, began_ns=time.time_ns())
    asked = (configured_as_assumed(proved, id_, proved.direct(id_), PROBE_TIMEOUT_S) for id_ in proved.hosts)
    await asyncio.gather(*asked)
    return proved


async def _explained(cluster: ExternalCluster, problem: str) -> str:
    """Return why the controllers of a quorum do not answer: what they ask for, if the settings say something else."""
    security = security_of(of_controllers(cluster.client))
    addresses = [address.rpartition(":") for address in cluster.controllers.values()]
    found = [await explained(host, int(port), security, problem, PROBE_TIMEOUT_S) for host, _, port in addresses]
    return "; ".join(dict.fromkeys(found)) or problem
