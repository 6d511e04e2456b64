"""What these programs share: lines of JSON, and the end of their input."""

import json
import select
import sys

MOST_RECORDS = 20
"""In one transaction of a copier."""


def show(**line: object) -> None:
    """Print a line."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def has_ended() -> bool:
    """Return whether the input of this program has ended."""
    return bool(select.select([sys.stdin], [], [], 0)[0])


def values_of(number: int) -> list[tuple[int, bytes]]:
    """Return partitions and values of a transaction."""
    return [(value % 3, str(value).encode()) for value in range(10 * number, 10 * number + 10)]
