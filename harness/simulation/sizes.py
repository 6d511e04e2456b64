"""How many bytes would something be on a real network, for links with a rate?"""

from copy import copy
from typing import Any

from harness.broker.wire.codec import encode_request, encode_response
from harness.broker.zookeeper.client import Create, Op, Set
from harness.cluster.links.links import bytes_in
from harness.simulation.network import SimulatedRequest, SimulatedResponse
from harness.simulation.zookeeper.ensemble import Answer, Event, Request


def size_of(item: Any) -> int:
    """Return the length of its frame to or from a broker, or of the paths and data that ZooKeeper and a client tell.

    A handshake, and the end of a connection, have no length.
    """
    match item:
        case SimulatedRequest(frame=None):
            message = copy(item.message)  # encoding leaves a header in it
            return len(encode_request(message, item.version, correlation_id=0, client_id=item.client_id))
        case SimulatedResponse(frame=None):
            return len(encode_response(copy(item.message), item.version, correlation_id=0))
        case SimulatedRequest() | SimulatedResponse():
            return len(item.frame or b"")
        case Request():
            return len(item.path) + sum(map(_size_of_op, item.ops))
        case Event():
            return len(item.path)
        case Answer():
            return _size_of_result(item.result)
    return bytes_in(item)


def _size_of_op(op: Op) -> int:
    return len(op.path) + (len(op.data) if isinstance(op, Create | Set) else 0)


def _size_of_result(result: Any) -> int:
    """Return the length of the data and names in an answer; a stat has none."""
    if isinstance(result, list | tuple):
        return sum(map(_size_of_result, result))
    return len(result) if isinstance(result, str | bytes) else 0
