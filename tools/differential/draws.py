"""What do scripts draw from? Names, numbers and versions: mostly what makes sense, sometimes what does not."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from harness.client_rules.scripts.script import ASK, Step

T = TypeVar("T")
Versions = Mapping[str, tuple[int, int]]
"""The first and the last version of each API that both brokers serve."""
BAD_SHARE = 0.06


@dataclass(slots=True)
class Draw:
    """One script in the making."""

    rng: random.Random
    versions: Versions
    topics: int = 0
    """How many names of topics are used already."""
    producers: int = 0
    members: int = 0
    sessions: int = 0
    """Of fetches."""
    sequences: dict[tuple[int, str, int], int] = field(default_factory=dict)
    """The next sequence number by producer, topic and partition, as far as all went well."""

    def bad(self, share: float = BAD_SHARE) -> bool:
        """Whether the next argument is a bad one."""
        return self.rng.random() < share

    def one(self, *choices: T) -> T:
        """Return one of these."""
        return self.rng.choice(choices)

    def usually(self, usual: T, *others: T, share: float = 0.8) -> T:
        """Return the first, or sometimes another one."""
        return usual if not others or self.rng.random() < share else self.rng.choice(others)

    def some(self, choices: Sequence[T], most: int = 3) -> list[T]:
        """Return some different ones, at least one."""
        return self.rng.sample(list(choices), self.rng.randint(1, min(most, len(choices))))

    def step(self, api: str, *, how: str = ASK, version: int | None = None, **fields: Any) -> Step:
        """Return a step in a version that both brokers serve."""
        first, last = self.versions[api]
        chosen = self.rng.randint(first, last) if version is None else min(max(version, first), last)
        return Step(api=api, version=chosen, fields=fields, how=how)

    def topic(self) -> str:
        """Return the name of a topic, which probably exists."""
        if self.bad(0.04):
            return self.one("$t:9", "", "a/b", "__consumer_offsets_")
        return f"$t:{self.rng.randrange(max(self.topics, 1))}"

    def new_topic(self) -> str:
        """Return a name that is not used yet."""
        self.topics += 1
        return f"$t:{self.topics - 1}"

    def partition(self) -> int:
        """Return a partition; most topics have two."""
        return self.usually(0, 1, 2, 7, -1, share=0.75)

    def partitions(self) -> list[int]:
        """Return some different partitions; how a broker answers one that is named twice is not compared."""
        return self.some(sorted({0, self.partition(), self.partition()}))

    def group(self) -> str:
        """Return the name of a group."""
        return self.usually("$g:0", "$g:1", share=0.85)

    def transactional_id(self) -> str:
        """Return a transactional id."""
        return self.usually("$x:0", "$x:1", share=0.8)

    def member(self) -> str:
        """Return a member id."""
        return self.usually(f"$m:{self.rng.randrange(max(self.members, 1))}", "", "other", share=0.9)

    def producer(self) -> tuple[str | int, str | int]:
        """Return a producer's id and epoch."""
        index = self.rng.randrange(max(self.producers, 1))
        usual: tuple[str | int, str | int] = (f"$p:{index}", f"$e:{index}")
        return self.usually(usual, (usual[0], 0), (usual[0], 7), (77, 0), (0, 0), share=0.9)

    def offset(self) -> int:
        """Return an offset of a short log."""
        return self.usually(self.rng.randint(0, 12), -1, -2, 100, 2**62, share=0.9)
