"""The messages that brokers send each other: kafka-python ships no spec of them, or none of their first version.

The classes get their fields from the specs when they are created; `inter_broker.pyi` says which, for the type checker.
"""

from kafka.protocol.api_message import ApiMessage

from harness.broker.wire import specs


class LeaderAndIsrRequest(ApiMessage, load_json=specs):
    """The controller names leader, ISR and leader epoch of partitions that the receiver replicates."""


class LeaderAndIsrResponse(ApiMessage, load_json=specs):
    """One error for the request and one a partition."""


class StopReplicaRequest(ApiMessage, load_json=specs):
    """The controller stops replicas of the receiver, and may have them deleted; v3 says so a partition (KIP-570)."""


class StopReplicaResponse(ApiMessage, load_json=specs):
    """One error for the request and one a partition."""


class UpdateMetadataRequest(ApiMessage, load_json=specs):
    """The controller's list of live brokers and leaders."""


class UpdateMetadataResponse(ApiMessage, load_json=specs):
    """One error for the request."""


class ControlledShutdownRequest(ApiMessage, load_json=specs):
    """A broker that wants to stop asks the controller to move its leaders away."""


class ControlledShutdownResponse(ApiMessage, load_json=specs):
    """The partitions that the broker still leads."""


class WriteTxnMarkersRequest(ApiMessage, load_json=specs):
    """A transaction coordinator ends transactions in partitions that the receiver leads."""


class WriteTxnMarkersResponse(ApiMessage, load_json=specs):
    """One error a marker and partition."""
