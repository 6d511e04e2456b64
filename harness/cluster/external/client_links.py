"""Links between the brokers of an existing cluster and clients of the run, which lead through a relay of the run."""

import sys
from pathlib import Path

from harness.cluster import relay
from harness.cluster.external.forwards import listening, setup_of
from harness.cluster.external.place import ExternalCluster
from harness.cluster.relay.capabilities import LinkCapabilities, Relayed
from harness.cluster.relay.listeners import save
from harness.cluster.supervised_driver import ended_relay, server_state
from harness.cluster.supervision.supervision import LAST_STAGE, Supervision
from harness.errors import ClusterError
from harness.store.folder import RunFolder

AFTER_THE_GUARD = LAST_STAGE + 1
"""The guard may reach brokers through the relay."""


class ClientLinks(LinkCapabilities):
    """What a driver of an existing cluster does with a relay, if the cluster file names its addresses."""

    _root: Path
    _supervision: Supervision

    def _through_relay(self) -> Relayed:
        cluster = ExternalCluster.load(self._root)
        if not cluster.relay:
            raise ClusterError("links cannot be disturbed: the cluster file names no addresses of the relay")
        return Relayed(folder=RunFolder(self._root).cluster / relay.FOLDER, brokers=tuple(cluster.relay))

    async def _start_relay(self, cluster: ExternalCluster) -> None:
        """Start the relay, if clients reach brokers through it; return when it listens."""
        if not cluster.relay:
            return
        folder = RunFolder(self._root).cluster
        save(folder / relay.FOLDER, setup_of(cluster.relay, cluster.relay_listens_on))
        argv = [sys.executable, "-m", relay.__name__, str((folder / relay.FOLDER).resolve())]
        log = folder / "relay.log"
        await self._supervision.spawn(relay.PROCESS, argv, log, AFTER_THE_GUARD)

        async def ended() -> bool:
            return bool(await self._severed(cluster))

        await listening(folder / relay.FOLDER, log, ended)

    async def _severed(self, cluster: ExternalCluster) -> str:
        """Return that the relay has ended; empty if it goes on, or there is none."""
        child = (await self._supervision.children()).get(relay.PROCESS) if cluster.relay else None
        return "" if child is None else ended_relay(server_state(child))
