from collections.abc import Callable
from typing import NoReturn


def raising(error: BaseException) -> Callable[..., NoReturn]:
    """Return what fails, whatever it is called with."""

    def fail(*_: object, **__: object) -> NoReturn:
        raise error

    return fail
