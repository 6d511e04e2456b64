from collections.abc import Mapping, Sequence

from harness.broker.wire.messages import UpdateMetadataRequest

_Broker = UpdateMetadataRequest.UpdateMetadataBroker
_Topic = UpdateMetadataRequest.UpdateMetadataTopicState
_Partition = _Topic.UpdateMetadataPartitionState

Brokers = Mapping[int, Sequence[str]]
"""Listeners of those that live."""
Topics = Mapping[str, Mapping[int, tuple[int, int, list[int]]]]
"""Leader, leader epoch and replicas by partition by topic."""


def metadata_update(brokers: Brokers, topics: Topics, controller_id: int) -> UpdateMetadataRequest:
    """Name the live brokers and the leaders; all replicas are in sync, and those on other brokers are offline."""

    def partition(number: int, leader: int, epoch: int, replicas: list[int]) -> _Partition:
        known = {"partition_index": number, "leader": leader, "leader_epoch": epoch, "controller_epoch": 1}
        offline = [replica for replica in replicas if replica not in brokers]
        return _Partition(**known, isr=replicas, replicas=replicas, offline_replicas=offline)

    def broker(broker_id: int, listeners: Sequence[str]) -> _Broker:
        endpoint = _Broker.UpdateMetadataEndpoint
        at = [endpoint(host=f"h{broker_id}", port=9000 + n, listener=name) for n, name in enumerate(listeners)]
        return _Broker(id=broker_id, endpoints=at)

    return UpdateMetadataRequest(
        controller_id=controller_id,
        controller_epoch=1,
        broker_epoch=1,
        live_brokers=[broker(*each) for each in brokers.items()],
        topic_states=[
            _Topic(topic_name=name, partition_states=[partition(number, *state) for number, state in states.items()])
            for name, states in topics.items()
        ],
    )
