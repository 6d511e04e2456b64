"""Consumers and committers: clients of a group, which do in virtual time what their rules say."""

import asyncio
from collections.abc import Iterable
from contextlib import ExitStack

from harness.broker.replicas.fetcher_messages import READ_COMMITTED, READ_UNCOMMITTED
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.sentinels import LATEST
from harness.broker.wire.transport import PeerError
from harness.client_rules import steps
from harness.client_rules.committing import GroupRules
from harness.contracts.workloads import ClientPlan
from harness.simulation.clients.coordinator import Coordinator
from harness.simulation.clients.fetching import Fetching, list_offset
from harness.simulation.clients.metadata import ClusterClient
from harness.simulation.clients.offsets import GroupOffsets
from harness.simulation.clients.refusals import Refused
from harness.simulation.transport import MemoryTransport
from harness.store import history
from harness.store.history import OpKind
from harness.values import TopicPartition

ISOLATION_LEVELS = {
    "": READ_UNCOMMITTED,
    history.READ_UNCOMMITTED: READ_UNCOMMITTED,
    history.READ_COMMITTED: READ_COMMITTED,
}
"""By their names in the history, those of requests."""
POLL_S = 0.25
"""How long one poll collects records."""


class SimulatedGroupMember:
    """One process in a group of its own."""

    _client: ClusterClient
    """Since the first step, which is a restart; so is the next one."""
    _offsets: GroupOffsets

    def __init__(
        self, plan: ClientPlan, rules: GroupRules, transport: MemoryTransport, bootstrap: Iterable[tuple[str, int]]
    ) -> None:
        self._plan = plan
        self._isolation_level = ISOLATION_LEVELS.get(plan.parameters.get("isolation", ""), READ_UNCOMMITTED)
        self._rules = rules
        self._transport = transport
        self._bootstrap = tuple(bootstrap)
        self._open = ExitStack()
        self._fetching: Fetching | None = None
        """None until the rules say to read, which those of a committer never do."""
        self._committing: asyncio.Task[None] | None = None

    async def run(self, stop: asyncio.Event) -> None:
        """Do what the rules say, to the end that they come to after `stop` is set."""
        with self._open:
            await steps.carry_out_async(self._rules.script(stop.is_set), self._act)

    async def _act(self, step: steps.Step) -> steps.StepResult:
        match step:
            case steps.Restart():
                self._open.close()
                self._connect()
            case steps.ReadFromTheStart():
                self._read_from_the_start()
            case steps.Poll():
                await asyncio.sleep(POLL_S)
                return taken(self._fetching)
            case steps.Commit(positions, wait):
                commit = self._offsets.commit(positions, self._rules.commits.decided)
                if wait:
                    await commit
                else:
                    self._committing = asyncio.ensure_future(commit)
            case steps.Question(kind, partition):
                return await self._ask(kind, partition)
            case steps.Pause(length_s):
                await asyncio.sleep(length_s)
        return steps.DONE

    def _connect(self) -> None:
        self._client = ClusterClient(
            self._transport,
            self._bootstrap,
            self._plan.topics,
            client_id=self._plan.process,
            timeout_s=max(1.0, self._plan.parameters["request_timeout_ms"] / 1000),
            changed=lambda: self._fetching.look_again() if self._fetching else None,
        )
        self._open.callback(self._client.close)
        self._coordinator = Coordinator(self._plan.process, self._client)
        self._offsets = GroupOffsets(self._plan.process, self._coordinator)

    def _read_from_the_start(self) -> None:
        if self._fetching is None:
            self._fetching = Fetching(self._client, self._isolation_level)
            self._open.callback(self._fetching.stop)
        self._fetching.assign(dict.fromkeys(steps.partitions_of(self._plan.topics), 0))

    async def _ask(self, kind: OpKind, partition: TopicPartition) -> steps.StepResult:
        try:
            offset = self._end_offset if kind is OpKind.END_OFFSET else self._offsets.committed
            return steps.StepResult(offset=await offset(partition))
        except (PeerError, Refused) as error:
            self._coordinator.forget()
            if self._fetching is not None:  # a process that only commits needs no leaders
                self._client.refresh_soon()
            return steps.StepResult(error=str(error))

    async def _end_offset(self, partition: TopicPartition) -> int:
        leader = self._client.leaders.get(partition)
        if leader is None:
            raise Refused(ErrorCode.LEADER_NOT_AVAILABLE)
        return await list_offset(self._client, leader.broker_id, partition, LATEST, self._isolation_level)


def taken(fetching: Fetching | None) -> steps.StepResult:
    """Return the result of a poll: what was fetched since the last one."""
    if fetching is None:
        return steps.DONE
    records = fetching.take()
    return steps.StepResult(records=records, passed=fetching.passed() if not records else {})
