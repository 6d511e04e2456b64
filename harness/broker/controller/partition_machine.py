"""Moves partitions between states, and elects their leaders (Kafka's `ZkPartitionStateMachine`)."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from harness.broker.background import InSteps
from harness.broker.controller.environment import Environment
from harness.broker.controller.leadership import as_evidence, elected, initial
from harness.broker.controller.selectors import Candidates, Refusal, Selection, Strategy
from harness.broker.controller.transitions import PARTITION_PREVIOUS, PartitionStatus
from harness.broker.zookeeper.client import BadVersion, Create, NodeExists, OpResult, Set, Stat
from harness.broker.zookeeper.partition_state import VersionedState, read_partition_state, read_partition_states
from harness.broker.zookeeper.pipeline import all_of
from harness.broker.zookeeper.znodes import (
    PartitionStateZnode,
    partition_path,
    partition_state_path,
    partitions_path,
)
from harness.events import NO_LEADER, Election, PartitionStateChange
from harness.values import TopicPartition

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Contest:
    """Cause and strategy of an election."""

    strategy: Strategy
    trigger: str
    allow_unclean: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ballot:
    """One election about to be written."""

    partition: TopicPartition
    previous: VersionedState
    candidates: Candidates
    selection: Selection
    wanted: PartitionStateZnode


class PartitionMachine:
    """The partitions' states; a failed change is logged and leaves the state unchanged."""

    def __init__(self, environment: Environment) -> None:
        self._env = environment
        self._context = environment.context
        self._failures: dict[TopicPartition, str] = {}
        """Failures of the current change."""

    async def start(self) -> None:
        """Set the states from ZooKeeper's content, then elect missing leaders."""
        for partition in self._context.partitions():
            if partition not in self._context.leadership:
                status = PartitionStatus.NEW
            elif self._context.is_online(self._context.leader(partition), partition):
                status = PartitionStatus.ONLINE
            else:
                status = PartitionStatus.OFFLINE
            self._context.partition_status[partition] = status
        if self._env.rules.failovers_elect:
            await self.elect_missing(trigger="failover")

    async def elect_missing(self, *, trigger: str, topic: str | None = None) -> None:
        """Try to elect a leader for every partition without one, of one topic or of all that are not to be deleted."""
        leaderless = self._context.partitions_in(PartitionStatus.NEW, PartitionStatus.OFFLINE)
        partitions = [p for p in leaderless if topic in (None, p[0]) and p[0] not in self._context.deleting]
        await self.change(partitions, PartitionStatus.ONLINE, Strategy.OFFLINE, trigger=trigger)

    async def change(
        self,
        partitions: Sequence[TopicPartition],
        target: PartitionStatus,
        strategy: Strategy = Strategy.OFFLINE,
        *,
        trigger: str = "",
        allow_unclean: bool = False,
    ) -> dict[TopicPartition, str]:
        """Move partitions to a state, and return the reason for those that failed.

        `strategy` chooses a leader if an election is needed; with `allow_unclean` one outside the ISR may be elected in
        spite of the configuration.

        Raises:
            ControllerMovedError: another controller has taken over.
        """
        self._env.batch.begin()
        self._failures = {}
        legal = [partition for partition in partitions if self._is_legal(partition, target)]
        if target is PartitionStatus.ONLINE:
            new = [p for p in legal if self._status(p) is PartitionStatus.NEW]
            old = [p for p in legal if self._status(p) is not PartitionStatus.NEW]
            await self._initialize(new, _Contest(Strategy.INITIALIZE, trigger))
            await self._elect(old, _Contest(strategy, trigger, allow_unclean))
        else:
            async for partition in InSteps(legal):
                self._move(partition, target)
        self._env.send_batch()
        return self._failures

    async def _initialize(self, partitions: Sequence[TopicPartition], contest: _Contest) -> None:
        """Write the first state of new partitions; one without a live replica stays new."""
        epoch = self._context.epoch.value
        states: dict[TopicPartition, PartitionStateZnode] = {}
        async for partition in InSteps(partitions):
            assigned = self._context.replicas(partition)
            live = tuple(replica for replica in assigned if self._context.is_online(replica, partition))
            if live:
                states[partition] = initial(live, epoch)
            else:
                self._no_leader(partition, contest, "no assigned replica is online")
        topics = sorted({topic for topic, _ in states})
        await self._env.writes.write_all([Create(path=partitions_path(topic), data=b"") for topic in topics])
        await self._env.writes.write_all([Create(path=partition_path(*p), data=b"") for p in states])
        created = await self._env.writes.write_all(
            [Create(path=partition_state_path(*p), data=state.encode()) for p, state in states.items()]
        )
        async for (partition, state), result in InSteps([*zip(states.items(), created, strict=True)]):
            if await self._is_created(partition, state, result):
                self._initialized(partition, VersionedState(state=state, zk_version=0), contest)
            else:
                self._no_leader(partition, contest, f"cannot create the state znode: {result!r}")

    async def _is_created(self, partition: TopicPartition, state: PartitionStateZnode, result: OpResult) -> bool:
        """Whether the znode exists, created now or by a try whose answer was lost with the connection."""
        if isinstance(result, NodeExists):
            standing = await read_partition_state(self._env.session.current, *partition)
            return standing == VersionedState(state=state, zk_version=0)
        return isinstance(result, str)

    def _initialized(self, partition: TopicPartition, result: VersionedState, contest: _Contest) -> None:
        self._context.leadership[partition] = result
        candidates = self._candidates(partition, result.state)
        self._log_election(partition, contest, candidates, result=result)
        self._env.batch.add_leader_and_isr(result.state.isr, partition, result, is_new=True)
        self._move(partition, PartitionStatus.ONLINE)

    async def _elect(self, partitions: Sequence[TopicPartition], contest: _Contest) -> None:
        """Elect until nothing is left to retry: a write that lost to another one is decided again."""
        remaining = list(partitions)
        while remaining:
            ballots = await self._ballots(remaining, contest)
            writes = [
                Set(
                    path=partition_state_path(*ballot.partition),
                    data=ballot.wanted.encode(),
                    version=ballot.previous.zk_version,
                )
                for ballot in ballots
            ]
            results = await self._env.writes.write_all(writes)
            remaining = []
            async for ballot, result in InSteps([*zip(ballots, results, strict=True)]):
                if isinstance(result, Stat):
                    self._elected(ballot, VersionedState(state=ballot.wanted, zk_version=result.version), contest)
                elif isinstance(result, BadVersion):
                    remaining.append(ballot.partition)
                else:
                    self._no_leader(ballot.partition, contest, repr(result), ballot.previous)

    async def _ballots(self, partitions: Sequence[TopicPartition], contest: _Contest) -> list[_Ballot]:
        """Return the decisions for partitions that can have a leader, from freshly read states."""
        epoch = self._context.epoch.value
        states = await read_partition_states(self._env.session.current, partitions)
        unclean = await self._unclean_decisions(states, contest)
        ballots = []
        async for partition in InSteps(partitions):
            previous = states.get(partition)
            if previous is None:
                self._no_leader(partition, contest, "there is no state znode")
                continue
            if previous.state.controller_epoch > epoch:
                error = f"controller epoch {previous.state.controller_epoch} has written, this is {epoch}"
                self._no_leader(partition, contest, error, previous)
                continue
            allowed = unclean.get(partition[0], False)
            if isinstance(allowed, str):
                self._no_leader(partition, contest, allowed, previous)
                continue
            candidates = self._candidates(partition, previous.state, unclean_allowed=allowed)
            selection = self._env.selectors[contest.strategy](candidates)
            if isinstance(selection, Refusal):
                self._no_leader(partition, contest, selection.reason, previous, unclean_allowed=allowed)
                continue
            ballots.append(
                _Ballot(
                    partition=partition,
                    previous=previous,
                    candidates=candidates,
                    selection=selection,
                    wanted=elected(previous.state, selection, epoch),
                )
            )
        return ballots

    async def _unclean_decisions(
        self, states: dict[TopicPartition, VersionedState], contest: _Contest
    ) -> dict[str, bool | str]:
        """Return, for each topic that has a partition without a live ISR member, whether unclean election is allowed.

        Asked for by an admin it is. Otherwise the topic's configuration is read from ZooKeeper at this moment, over
        the broker's default; a topic whose configuration cannot be read gets the reason instead.
        """
        if contest.strategy is not Strategy.OFFLINE:
            return {}
        topics = sorted(
            {
                partition[0]
                for partition, known in states.items()
                if not self._candidates(partition, known.state).live_isr
            }
        )
        if contest.allow_unclean:
            return dict.fromkeys(topics, True)
        return dict(zip(topics, await all_of(self._env.unclean_allowed(topic) for topic in topics), strict=True))

    def _elected(self, ballot: _Ballot, result: VersionedState, contest: _Contest) -> None:
        self._context.leadership[ballot.partition] = result
        self._log_election(
            ballot.partition,
            contest,
            ballot.candidates,
            previous=ballot.previous,
            result=result,
            unclean=ballot.selection.unclean,
        )
        self._env.counters.unclean_leader_elections += ballot.selection.unclean
        self._env.batch.add_leader_and_isr(ballot.selection.receivers, ballot.partition, result, is_new=False)
        self._move(ballot.partition, PartitionStatus.ONLINE)

    def _candidates(
        self, partition: TopicPartition, known: PartitionStateZnode | None, *, unclean_allowed: bool = False
    ) -> Candidates:
        return Candidates(
            assigned=self._context.replicas(partition),
            isr=() if known is None else known.isr,
            leader=NO_LEADER if known is None else known.leader,
            live=self._context.live_for(partition),
            shutting_down=frozenset(self._context.shutting_down),
            unclean_allowed=unclean_allowed,
            rules=self._env.rules,
        )

    def _status(self, partition: TopicPartition) -> PartitionStatus:
        return self._context.partition_status.get(partition, PartitionStatus.NON_EXISTENT)

    def _is_legal(self, partition: TopicPartition, target: PartitionStatus) -> bool:
        legal = self._status(partition) in PARTITION_PREVIOUS[target]
        if not legal:
            self._failures[partition] = f"{self._status(partition)} cannot become {target}"
            log.error("partition.illegal partition=%s-%d from=%s to=%s", *partition, self._status(partition), target)
        return legal

    def _move(self, partition: TopicPartition, target: PartitionStatus) -> None:
        previous = self._status(partition)
        if target is PartitionStatus.NON_EXISTENT:
            del self._context.partition_status[partition]
        else:
            self._context.partition_status[partition] = target
        self._env.state_log.emit(
            PartitionStateChange(
                topic=partition[0],
                partition=partition[1],
                from_state=str(previous),
                to_state=str(target),
                controller_epoch=self._context.epoch.value,
            )
        )

    def _no_leader(
        self,
        partition: TopicPartition,
        contest: _Contest,
        error: str,
        previous: VersionedState | None = None,
        *,
        unclean_allowed: bool = False,
    ) -> None:
        self._failures[partition] = error
        log.error("election.failed partition=%s-%d strategy=%s error=%s", *partition, contest.strategy, error)
        known = None if previous is None else previous.state
        candidates = self._candidates(partition, known, unclean_allowed=unclean_allowed)
        self._log_election(partition, contest, candidates, previous=previous, error=error)

    def _log_election(
        self,
        partition: TopicPartition,
        contest: _Contest,
        candidates: Candidates,
        *,
        previous: VersionedState | None = None,
        result: VersionedState | None = None,
        unclean: bool = False,
        error: str = "",
    ) -> None:
        self._env.state_log.emit(
            Election(
                topic=partition[0],
                partition=partition[1],
                strategy=str(contest.strategy),
                trigger=contest.trigger,
                controller_epoch=self._context.epoch.value,
                previous=None if previous is None else as_evidence(previous),
                online=sorted(candidates.online),
                shutting_down=sorted(candidates.shutting_down),
                assigned=list(candidates.assigned),
                profile=self._env.profile,
                unclean_allowed=candidates.unclean_allowed,
                unclean=unclean,
                result=None if result is None else as_evidence(result),
                error=error,
            )
        )
