"""Ids for idempotent producers: each broker takes a thousand at a time from ZooKeeper and hands them out."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from harness.broker.zookeeper.client import BadVersion, ZooKeeper
from harness.broker.zookeeper.znodes import PRODUCER_ID_BLOCK, ProducerIdBlock

log = logging.getLogger(__name__)

BLOCK_SIZE = 1000
"""`ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE`."""


@dataclass(slots=True, kw_only=True)
class ProducerIds:
    """Hands out ids that are unique in the cluster."""

    broker_id: int
    zookeeper: Callable[[], ZooKeeper]
    """Returns the session in force."""
    left: range = field(default=range(0))
    """The ids that are claimed and not handed out."""
    _claiming: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def next_id(self) -> int:
        """Return a fresh id.

        Raises:
            ZooKeeperError: a new block was needed and could not be claimed; no id is used up.
            MalformedZnode: the last block cannot be read.
        """
        async with self._claiming:
            if not self.left:
                block = await self._claim()
                self.left = range(block.first, block.last + 1)
                log.info("producer_ids.claimed first=%d last=%d", block.first, block.last)
            producer_id, self.left = self.left[0], self.left[1:]
            return producer_id

    async def _claim(self) -> ProducerIdBlock:
        """Write the block after the last one, and retry after a faster broker (`ProducerIdManager`)."""
        zookeeper = self.zookeeper()
        while True:
            data, stat = await zookeeper.get(PRODUCER_ID_BLOCK)
            first = ProducerIdBlock.decode(data).last + 1 if data else 0
            block = ProducerIdBlock(broker_id=self.broker_id, first=first, last=first + BLOCK_SIZE - 1)
            try:
                await zookeeper.set(PRODUCER_ID_BLOCK, block.encode(), stat.version)
            except BadVersion:
                # A write whose answer was lost is sent again, and may then find its own work.
                written, _ = await zookeeper.get(PRODUCER_ID_BLOCK)
                if written != block.encode():
                    continue
            return block
