"""Errors of the controller."""


class ControllerMovedError(Exception):
    """Another broker is controller, or this one is not any more."""


class StaleBrokerEpochError(Exception):
    """A broker asked with the epoch of an earlier registration (KIP-380)."""


class BrokerNotAvailableError(Exception):
    """The broker is not alive, by the controller's view."""


class StateChangeFailed(Exception):
    """A partition or replica could not change its state; the message says why."""
