"""How is a script played to one broker? Step by step, so that a step meets the same state in every play.

A broker answers some requests before their effect is everywhere. So the next step waits until a new topic has leaders,
a deleted one is gone from ZooKeeper and a transaction has its markers; and after a change of a configuration, which
reaches the broker by a notification, for `NOTIFIED_S`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from harness.broker.wire import messages as m
from harness.broker.wire.transport import Connection, PeerError, Transport
from harness.client_rules.scripts.answers import learn, shown
from harness.client_rules.scripts.script import AWAIT, BEGIN, RESTART, SETTLE, Script, Step, Symbols, request_of
from harness.contracts.requests import as_values, error_codes

TIMEOUT_S = 10.0
NOTIFIED_S = 0.06
"""In this time a changed configuration is in force, and a request is with the broker."""
LOOK_EVERY_S = 0.02
SETTLED_S = 1.2
QUIET_S = 4.0
"""For so long nothing changed: retention, cleaner, expiry and rebalances are through."""
CONCURRENT_TRANSACTIONS = 51
INVALID_TOPIC = 17
"""The answer to CreatePartitions for a topic that is queued for deletion."""
TOPIC_ALREADY_EXISTS = 36
PREPARED = ("PrepareCommit", "PrepareAbort")
CHANGES = frozenset({"AlterConfigs", "IncrementalAlterConfigs"})
ENDS = frozenset({"EndTxn", "InitProducerId"})
NO_ANSWER, CLOSED = "no answer", "closed"

Answers = list[Any]


@dataclass(slots=True)
class Play:
    """One script and one broker."""

    transport: Transport
    host: str
    port: int
    symbols: Symbols
    restarted: Callable[[str], Awaitable[None]] | None = None
    """Returns when the broker has ended, in the way that a step names, and serves again."""
    notified_s: float = NOTIFIED_S
    """After a change of a configuration."""
    answers: Answers = field(default_factory=list)
    _connection: Connection | None = None
    _must_stay: bool = False
    """Whether the broker may end only where the script has it."""
    _begun: list[tuple[Step, "asyncio.Task[Any]"]] = field(default_factory=list)

    async def play(self, script: Script) -> Answers:
        """Return what is compared of the answers, one a step."""
        self._must_stay = any(step.how == RESTART for step in script)
        try:
            for step in script:
                self.answers.append(await self._step(step))
            while self._begun:
                self.answers.append(await self._awaited())
        finally:
            for _, task in self._begun:
                task.cancel()
            await self.clean_up(script)
        return self.answers

    async def _step(self, step: Step) -> Any:
        if step.how == AWAIT:
            return await self._awaited()
        if step.how == BEGIN:
            self._begun.append((step, asyncio.create_task(self._alone(step))))
            await asyncio.sleep(NOTIFIED_S)
            return BEGIN
        if step.how == SETTLE:
            return await self._settled(step)
        if step.how == RESTART:
            assert self.restarted is not None
            await self.restarted(step.api)
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            return RESTART
        return self._compared(step, await self._ended(step))

    async def _awaited(self) -> Any:
        if not self._begun:
            return None
        step, task = self._begun.pop(0)
        return self._compared(step, await task)

    async def _settled(self, step: Step) -> Any:
        loop = asyncio.get_running_loop()
        last = self._compared(step, await self._ask(step))
        since_s = began_s = loop.time()
        while loop.time() - since_s < QUIET_S and loop.time() - began_s < 3 * TIMEOUT_S:
            await asyncio.sleep(5 * LOOK_EVERY_S)
            now = self._compared(step, await self._ask(step))
            if now != last:
                last, since_s = now, loop.time()
        return last

    async def _ended(self, step: Step) -> Any:
        """Return the answer when what it begins is over."""
        answer = await self._ask(step)
        if step.api in CHANGES:
            await asyncio.sleep(self.notified_s)
        if isinstance(answer, str):
            return answer
        if step.api in ("CreateTopics", "CreatePartitions") and not step.fields.get("validate_only"):
            of_topics = answer.topics if step.api == "CreateTopics" else answer.results
            await self._until_led({each.name for each in of_topics if not each.error_code})
        if step.api == "DeleteTopics":
            for name in self.symbols.meaning(step.fields.get("topic_names") or ()):
                await self._until_gone(name)
        if CONCURRENT_TRANSACTIONS in _errors(answer, step.version):
            answer = await self._until(
                lambda: self._ask(step),
                lambda latest: CONCURRENT_TRANSACTIONS not in _errors(latest, step.version),
                answer,
            )
        if step.api in ENDS and (transactional_id := self.symbols.meaning(step.fields.get("transactional_id"))):
            asked = m.DescribeTransactionsRequest(transactional_ids=[transactional_id])
            await self._until(
                lambda: self._request(asked, 0),
                lambda latest: (
                    isinstance(latest, str) or latest.transaction_states[0].transaction_state not in PREPARED
                ),
                None,
            )
        return answer

    async def _until_led(self, topics: Collection[str]) -> None:
        """Wait until the broker knows a leader of every partition of topics that were created or have grown."""
        if not topics:
            return
        await asyncio.sleep(NOTIFIED_S)  # of a topic that has grown it still knows the partitions from before
        asked = m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name=each) for each in topics])
        await self._until(
            lambda: self._request(asked, 1),
            lambda latest: isinstance(latest, str) or not any(_errors(latest, 1)),
            None,
            TIMEOUT_S,
        )

    async def _until_gone(self, topic: str) -> None:
        """Wait until a topic could be created again, and the controller's deletion is over.

        Brokers answer a deletion before its last znode is gone; a controller keeps a topic queued a little longer.
        """
        created = m.CreateTopicsRequest.CreatableTopic(
            name=topic, num_partitions=1, replication_factor=1, assignments=[], configs=[]
        )
        grown = m.CreatePartitionsRequest.CreatePartitionsTopic(name=topic, count=1, assignments=None)
        latest = await self._until(
            lambda: self._request(m.CreateTopicsRequest(topics=[created], timeout_ms=1000, validate_only=True), 4),
            lambda latest: isinstance(latest, str) or latest.topics[0].error_code != TOPIC_ALREADY_EXISTS,
            None,
            TIMEOUT_S,
        )
        if isinstance(latest, str) or latest.topics[0].error_code:
            return
        await self._until(
            lambda: self._request(m.CreatePartitionsRequest(topics=[grown], timeout_ms=1000, validate_only=True), 1),
            lambda latest: isinstance(latest, str) or latest.results[0].error_code != INVALID_TOPIC,
            None,
            TIMEOUT_S,
        )

    async def _until(
        self,
        ask: Callable[[], Awaitable[Any]],
        reached: Callable[[Any], bool],
        latest: Any,
        limit_s: float = SETTLED_S,
    ) -> Any:
        began_s = asyncio.get_running_loop().time()
        while asyncio.get_running_loop().time() - began_s < limit_s:
            await asyncio.sleep(LOOK_EVERY_S / 4)
            latest = await ask()
            if reached(latest):
                break
        return latest

    def _compared(self, step: Step, answer: Any) -> Any:
        if isinstance(answer, str):
            return answer
        learn(step, answer, self.symbols)
        return shown(step, answer, self.symbols)

    async def _ask(self, step: Step) -> Any:
        return await self._request(request_of(step, self.symbols), step.version)

    async def _request(self, request: Any, version: int) -> Any:
        if self._connection is not None and self._connection.closed and self._must_stay:
            raise PeerError("the broker ended before the script came to a restart")
        if self._connection is None or self._connection.closed:
            self._connection = await self._connected()
        return await _answered(self._connection, request, version)

    async def _alone(self, step: Step) -> Any:
        connection = await self._connected()
        try:
            return await _answered(connection, request_of(step, self.symbols), step.version)
        finally:
            connection.close()

    async def _connected(self) -> Connection:
        return await self.transport.connect(self.host, self.port, client_id="c", timeout_s=TIMEOUT_S)

    async def clean_up(self, script: Script) -> None:
        """Delete the topics and groups of the script, so that thousands of scripts do not add up."""
        text = str([step.fields for step in script])
        topics = [f"{self.symbols.prefix}t{index}" for index in range(10) if f"$t:{index}" in text]
        groups = [f"{self.symbols.prefix}g{index}" for index in range(10) if f"$g:{index}" in text]
        if topics:
            await self._request(m.DeleteTopicsRequest(topic_names=topics, timeout_ms=5000), 4)
        if groups:
            await self._request(m.DeleteGroupsRequest(groups_names=groups), 1)
        if self._connection is not None:
            self._connection.close()


async def _answered(connection: Connection, request: Any, version: int) -> Any:
    """Return the answer, or in a word why there is none."""
    try:
        return await connection.request(request, version, timeout_s=TIMEOUT_S)
    except PeerError as error:
        return NO_ANSWER if "no response" in str(error) else CLOSED if "closed" in str(error) else str(error)


def _errors(answer: Any, version: int) -> frozenset[int]:
    """Return all error codes of an answer."""
    return frozenset() if isinstance(answer, str) else error_codes(as_values(answer, version))
