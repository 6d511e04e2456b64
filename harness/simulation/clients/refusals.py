"""Errors that brokers answer with, by name."""

from harness.broker.wire.error_codes import ErrorCode


def described(code: int) -> str:
    """Return the name of an error."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"


class Refused(Exception):
    """A broker answered with an error."""

    def __init__(self, code: int) -> None:
        super().__init__(described(code))
        self.code = code
