"""What a client raises where a broker refuses."""

from harness.broker.wire.error_codes import described


class Refused(Exception):
    """A broker answered with an error."""

    def __init__(self, code: int) -> None:
        super().__init__(described(code))
        self.code = code
