"""Which partition of `__consumer_offsets` holds a group, and of `__transaction_state` a transactional id?"""

from functools import lru_cache, reduce

REMEMBERED = 1024
_MODULUS = 1 << 32


@lru_cache(maxsize=REMEMBERED)
def partition_of(name: str, partitions: int) -> int:
    """Return the partition, of so many: that of Java's `String.hashCode`, as Kafka's `Utils.abs` makes it positive."""
    units = name.encode("utf-16-be", "surrogatepass")
    characters = (units[at] << 8 | units[at + 1] for at in range(0, len(units), 2))
    value = reduce(lambda hashed, character: (31 * hashed + character) % _MODULUS, characters, 0)
    return min(value, _MODULUS - value) % (_MODULUS // 2) % partitions
