"""What the type checker sees of the messages between brokers; a test holds it against the specs."""

from kafka.protocol.api_message import ApiMessage
from kafka.protocol.data_container import DataContainer

class LeaderAndIsrRequest(ApiMessage):
    class LeaderAndIsrTopicState(DataContainer):
        class LeaderAndIsrPartitionState(DataContainer):
            partition_index: int
            controller_epoch: int
            leader: int
            leader_epoch: int
            isr: list[int]
            zk_version: int
            replicas: list[int]
            adding_replicas: list[int]
            removing_replicas: list[int]
            is_new: bool
            def __init__(
                self,
                *,
                version: int | None = None,
                partition_index: int = ...,
                controller_epoch: int = ...,
                leader: int = ...,
                leader_epoch: int = ...,
                isr: list[int] = ...,
                zk_version: int = ...,
                replicas: list[int] = ...,
                adding_replicas: list[int] = ...,
                removing_replicas: list[int] = ...,
                is_new: bool = ...,
            ) -> None: ...

        topic_name: str
        partition_states: list[LeaderAndIsrRequest.LeaderAndIsrTopicState.LeaderAndIsrPartitionState]
        def __init__(
            self,
            *,
            version: int | None = None,
            topic_name: str = ...,
            partition_states: list[LeaderAndIsrRequest.LeaderAndIsrTopicState.LeaderAndIsrPartitionState] = ...,
        ) -> None: ...

    class LeaderAndIsrLiveLeader(DataContainer):
        broker_id: int
        host_name: str
        port: int
        def __init__(
            self, *, version: int | None = None, broker_id: int = ..., host_name: str = ..., port: int = ...
        ) -> None: ...

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    topic_states: list[LeaderAndIsrRequest.LeaderAndIsrTopicState]
    live_leaders: list[LeaderAndIsrRequest.LeaderAndIsrLiveLeader]
    def __init__(
        self,
        *,
        version: int | None = None,
        controller_id: int = ...,
        controller_epoch: int = ...,
        broker_epoch: int = ...,
        topic_states: list[LeaderAndIsrRequest.LeaderAndIsrTopicState] = ...,
        live_leaders: list[LeaderAndIsrRequest.LeaderAndIsrLiveLeader] = ...,
    ) -> None: ...

class LeaderAndIsrResponse(ApiMessage):
    class LeaderAndIsrPartitionError(DataContainer):
        topic_name: str
        partition_index: int
        error_code: int
        def __init__(
            self,
            *,
            version: int | None = None,
            topic_name: str = ...,
            partition_index: int = ...,
            error_code: int = ...,
        ) -> None: ...

    error_code: int
    partition_errors: list[LeaderAndIsrResponse.LeaderAndIsrPartitionError]
    def __init__(
        self,
        *,
        version: int | None = None,
        error_code: int = ...,
        partition_errors: list[LeaderAndIsrResponse.LeaderAndIsrPartitionError] = ...,
    ) -> None: ...

class StopReplicaRequest(ApiMessage):
    class StopReplicaPartitionV0(DataContainer):
        topic_name: str
        partition_index: int
        def __init__(
            self, *, version: int | None = None, topic_name: str = ..., partition_index: int = ...
        ) -> None: ...

    class StopReplicaTopicV1(DataContainer):
        name: str
        partition_indexes: list[int]
        def __init__(
            self, *, version: int | None = None, name: str = ..., partition_indexes: list[int] = ...
        ) -> None: ...

    class StopReplicaTopicState(DataContainer):
        class StopReplicaPartitionState(DataContainer):
            partition_index: int
            leader_epoch: int
            delete_partition: bool
            def __init__(
                self,
                *,
                version: int | None = None,
                partition_index: int = ...,
                leader_epoch: int = ...,
                delete_partition: bool = ...,
            ) -> None: ...

        topic_name: str
        partition_states: list[StopReplicaRequest.StopReplicaTopicState.StopReplicaPartitionState]
        def __init__(
            self,
            *,
            version: int | None = None,
            topic_name: str = ...,
            partition_states: list[StopReplicaRequest.StopReplicaTopicState.StopReplicaPartitionState] = ...,
        ) -> None: ...

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    delete_partitions: bool
    ungrouped_partitions: list[StopReplicaRequest.StopReplicaPartitionV0]
    topics: list[StopReplicaRequest.StopReplicaTopicV1]
    topic_states: list[StopReplicaRequest.StopReplicaTopicState]
    def __init__(
        self,
        *,
        version: int | None = None,
        controller_id: int = ...,
        controller_epoch: int = ...,
        broker_epoch: int = ...,
        delete_partitions: bool = ...,
        ungrouped_partitions: list[StopReplicaRequest.StopReplicaPartitionV0] = ...,
        topics: list[StopReplicaRequest.StopReplicaTopicV1] = ...,
        topic_states: list[StopReplicaRequest.StopReplicaTopicState] = ...,
    ) -> None: ...

class StopReplicaResponse(ApiMessage):
    class StopReplicaPartitionError(DataContainer):
        topic_name: str
        partition_index: int
        error_code: int
        def __init__(
            self,
            *,
            version: int | None = None,
            topic_name: str = ...,
            partition_index: int = ...,
            error_code: int = ...,
        ) -> None: ...

    error_code: int
    partition_errors: list[StopReplicaResponse.StopReplicaPartitionError]
    def __init__(
        self,
        *,
        version: int | None = None,
        error_code: int = ...,
        partition_errors: list[StopReplicaResponse.StopReplicaPartitionError] = ...,
    ) -> None: ...

class UpdateMetadataRequest(ApiMessage):
    class UpdateMetadataTopicState(DataContainer):
        class UpdateMetadataPartitionState(DataContainer):
            partition_index: int
            controller_epoch: int
            leader: int
            leader_epoch: int
            isr: list[int]
            zk_version: int
            replicas: list[int]
            offline_replicas: list[int]
            def __init__(
                self,
                *,
                version: int | None = None,
                partition_index: int = ...,
                controller_epoch: int = ...,
                leader: int = ...,
                leader_epoch: int = ...,
                isr: list[int] = ...,
                zk_version: int = ...,
                replicas: list[int] = ...,
                offline_replicas: list[int] = ...,
            ) -> None: ...

        topic_name: str
        partition_states: list[UpdateMetadataRequest.UpdateMetadataTopicState.UpdateMetadataPartitionState]
        def __init__(
            self,
            *,
            version: int | None = None,
            topic_name: str = ...,
            partition_states: list[UpdateMetadataRequest.UpdateMetadataTopicState.UpdateMetadataPartitionState] = ...,
        ) -> None: ...

    class UpdateMetadataBroker(DataContainer):
        class UpdateMetadataEndpoint(DataContainer):
            port: int
            host: str
            listener: str
            security_protocol: int
            def __init__(
                self,
                *,
                version: int | None = None,
                port: int = ...,
                host: str = ...,
                listener: str = ...,
                security_protocol: int = ...,
            ) -> None: ...

        id: int
        endpoints: list[UpdateMetadataRequest.UpdateMetadataBroker.UpdateMetadataEndpoint]
        rack: str | None
        def __init__(
            self,
            *,
            version: int | None = None,
            id: int = ...,  # noqa: A002 - Kafka's name of the field
            endpoints: list[UpdateMetadataRequest.UpdateMetadataBroker.UpdateMetadataEndpoint] = ...,
            rack: str | None = ...,
        ) -> None: ...

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    topic_states: list[UpdateMetadataRequest.UpdateMetadataTopicState]
    live_brokers: list[UpdateMetadataRequest.UpdateMetadataBroker]
    def __init__(
        self,
        *,
        version: int | None = None,
        controller_id: int = ...,
        controller_epoch: int = ...,
        broker_epoch: int = ...,
        topic_states: list[UpdateMetadataRequest.UpdateMetadataTopicState] = ...,
        live_brokers: list[UpdateMetadataRequest.UpdateMetadataBroker] = ...,
    ) -> None: ...

class UpdateMetadataResponse(ApiMessage):
    error_code: int
    def __init__(self, *, version: int | None = None, error_code: int = ...) -> None: ...

class ControlledShutdownRequest(ApiMessage):
    broker_id: int
    broker_epoch: int
    def __init__(self, *, version: int | None = None, broker_id: int = ..., broker_epoch: int = ...) -> None: ...

class ControlledShutdownResponse(ApiMessage):
    class RemainingPartition(DataContainer):
        topic_name: str
        partition_index: int
        def __init__(
            self, *, version: int | None = None, topic_name: str = ..., partition_index: int = ...
        ) -> None: ...

    error_code: int
    remaining_partitions: list[ControlledShutdownResponse.RemainingPartition]
    def __init__(
        self,
        *,
        version: int | None = None,
        error_code: int = ...,
        remaining_partitions: list[ControlledShutdownResponse.RemainingPartition] = ...,
    ) -> None: ...

class WriteTxnMarkersRequest(ApiMessage):
    class WritableTxnMarker(DataContainer):
        class WritableTxnMarkerTopic(DataContainer):
            name: str
            partition_indexes: list[int]
            def __init__(
                self, *, version: int | None = None, name: str = ..., partition_indexes: list[int] = ...
            ) -> None: ...

        producer_id: int
        producer_epoch: int
        transaction_result: bool
        topics: list[WriteTxnMarkersRequest.WritableTxnMarker.WritableTxnMarkerTopic]
        coordinator_epoch: int
        def __init__(
            self,
            *,
            version: int | None = None,
            producer_id: int = ...,
            producer_epoch: int = ...,
            transaction_result: bool = ...,
            topics: list[WriteTxnMarkersRequest.WritableTxnMarker.WritableTxnMarkerTopic] = ...,
            coordinator_epoch: int = ...,
        ) -> None: ...

    markers: list[WriteTxnMarkersRequest.WritableTxnMarker]
    def __init__(
        self, *, version: int | None = None, markers: list[WriteTxnMarkersRequest.WritableTxnMarker] = ...
    ) -> None: ...

class WriteTxnMarkersResponse(ApiMessage):
    class WritableTxnMarkerResult(DataContainer):
        class WritableTxnMarkerTopicResult(DataContainer):
            class WritableTxnMarkerPartitionResult(DataContainer):
                partition_index: int
                error_code: int
                def __init__(
                    self, *, version: int | None = None, partition_index: int = ..., error_code: int = ...
                ) -> None: ...

            name: str
            partitions: list[
                WriteTxnMarkersResponse.WritableTxnMarkerResult.WritableTxnMarkerTopicResult.WritableTxnMarkerPartitionResult
            ]
            def __init__(
                self,
                *,
                version: int | None = None,
                name: str = ...,
                partitions: list[
                    WriteTxnMarkersResponse.WritableTxnMarkerResult.WritableTxnMarkerTopicResult.WritableTxnMarkerPartitionResult
                ] = ...,
            ) -> None: ...

        producer_id: int
        topics: list[WriteTxnMarkersResponse.WritableTxnMarkerResult.WritableTxnMarkerTopicResult]
        def __init__(
            self,
            *,
            version: int | None = None,
            producer_id: int = ...,
            topics: list[WriteTxnMarkersResponse.WritableTxnMarkerResult.WritableTxnMarkerTopicResult] = ...,
        ) -> None: ...

    markers: list[WriteTxnMarkersResponse.WritableTxnMarkerResult]
    def __init__(
        self, *, version: int | None = None, markers: list[WriteTxnMarkersResponse.WritableTxnMarkerResult] = ...
    ) -> None: ...
