"""How is a secret handed to a library that takes paths only? As a file that exists in memory alone."""

import contextlib
import os
from collections.abc import Iterator


@contextlib.contextmanager
def in_memory(text: str) -> Iterator[str]:
    """Yield the path of a file with this text, which no other user can open and no disk holds."""
    descriptor = os.memfd_create("client-settings")
    try:
        os.write(descriptor, text.encode())
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
