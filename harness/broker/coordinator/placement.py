"""Which partition of `__consumer_offsets` holds a group?"""

from functools import lru_cache

_INT32_MIN = -(2**31)
REMEMBERED = 1024
"""Results that are kept: a request about one transactional id asks up to ten times."""


@lru_cache(maxsize=REMEMBERED)
def partition_of(group: str, partitions: int) -> int:
    """Return the partition of `__consumer_offsets` that holds the group: Java's string hash, as Kafka's `Utils.abs`."""
    units = group.encode("utf-16-be", "surrogatepass")
    value = 0
    for index in range(0, len(units), 2):
        value = (31 * value + (units[index] << 8 | units[index + 1])) & 0xFFFFFFFF
    signed = value - 2**32 if value >= 2**31 else value
    return (0 if signed == _INT32_MIN else abs(signed)) % partitions
