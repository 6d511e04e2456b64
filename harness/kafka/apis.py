"""Which requests do probes send? Each as Kafka's message definitions state it, in the versions before flexible ones."""

from harness.kafka.codec import BOOL, BYTES, INT8, INT16, INT32, INT64, STRING, Api, Field, Fields

ERROR = Field("error_code", INT16)
NAME = Field("name", STRING)
INDEX = Field("partition_index", INT32)


def _throttle(since: int) -> Field:
    return Field("throttle_time_ms", INT32, since)


def _topics(*of_partition: Field, name: Field = NAME) -> Field:
    return Field("topics", (name, Field("partitions", of_partition)))


def _ids(name: str, since: int = 0) -> Field:
    return Field(name, (Field("broker_id", INT32),), since)


_BROKERS: Fields = (Field("node_id", INT32), Field("host", STRING), Field("port", INT32), Field("rack", STRING, 1))
_AUTHORIZED = "authorized_operations"

PRODUCE = Api(
    key=0,
    name="ProduceRequest",
    request=(
        Field("transactional_id", STRING, 3),
        Field("acks", INT16),
        Field("timeout_ms", INT32),
        _topics(INDEX, Field("records", BYTES)),
    ),
    response=(
        _topics(
            INDEX,
            ERROR,
            Field("base_offset", INT64),
            Field("log_append_time_ms", INT64, 2),
            Field("log_start_offset", INT64, 5),
            Field("record_errors", (Field("batch_index", INT32), Field("message", STRING)), 8),
            Field("error_message", STRING, 8),
        ),
        _throttle(1),
    ),
)
FETCH = Api(
    key=1,
    name="FetchRequest",
    request=(
        Field("replica_id", INT32),
        Field("max_wait_ms", INT32),
        Field("min_bytes", INT32),
        Field("max_bytes", INT32, 3),
        Field("isolation_level", INT8, 4),
        Field("session_id", INT32, 7),
        Field("session_epoch", INT32, 7),
        _topics(
            INDEX,
            Field("current_leader_epoch", INT32, 9),
            Field("fetch_offset", INT64),
            Field("log_start_offset", INT64, 5),
            Field("partition_max_bytes", INT32),
        ),
        Field("forgotten_topics", (NAME, _ids("partitions")), 7),
        Field("rack_id", STRING, 11),
    ),
    response=(
        _throttle(1),
        Field("error_code", INT16, 7),
        Field("session_id", INT32, 7),
        _topics(
            INDEX,
            ERROR,
            Field("high_watermark", INT64),
            Field("last_stable_offset", INT64, 4),
            Field("log_start_offset", INT64, 5),
            Field("aborted_transactions", (Field("producer_id", INT64), Field("first_offset", INT64)), 4),
            Field("preferred_read_replica", INT32, 11),
            Field("records", BYTES),
        ),
    ),
)
METADATA = Api(
    key=3,
    name="MetadataRequest",
    request=(
        Field("topics", (NAME,)),
        Field("allow_auto_topic_creation", BOOL, 4),
        Field("include_cluster_authorized_operations", BOOL, 8),
        Field("include_topic_authorized_operations", BOOL, 8),
    ),
    response=(
        _throttle(3),
        Field("brokers", _BROKERS),
        Field("cluster_id", STRING, 2),
        Field("controller_id", INT32, 1),
        Field(
            "topics",
            (
                ERROR,
                NAME,
                Field("is_internal", BOOL, 1),
                Field(
                    "partitions",
                    (
                        ERROR,
                        INDEX,
                        Field("leader_id", INT32),
                        Field("leader_epoch", INT32, 7),
                        _ids("replicas"),
                        _ids("isr"),
                        _ids("offline_replicas", 5),
                    ),
                ),
                Field(_AUTHORIZED, INT32, 8),
            ),
        ),
        Field(_AUTHORIZED, INT32, 8),
    ),
)
OFFSET_COMMIT = Api(
    key=8,
    name="OffsetCommitRequest",
    request=(
        Field("group_id", STRING),
        Field("generation_id", INT32, 1),
        Field("member_id", STRING, 1),
        Field("group_instance_id", STRING, 7),
        Field("retention_time_ms", INT64, 2, 4),
        _topics(
            INDEX,
            Field("committed_offset", INT64),
            Field("committed_leader_epoch", INT32, 6),
            Field("commit_timestamp", INT64, 1, 1),
            Field("committed_metadata", STRING),
        ),
    ),
    response=(_throttle(3), _topics(INDEX, ERROR)),
)
FIND_COORDINATOR = Api(
    key=10,
    name="FindCoordinatorRequest",
    request=(Field("key", STRING), Field("key_type", INT8, 1)),
    response=(
        _throttle(1),
        ERROR,
        Field("error_message", STRING, 1),
        Field("node_id", INT32),
        Field("host", STRING),
        Field("port", INT32),
    ),
)
SASL_HANDSHAKE = Api(
    key=17,
    name="SaslHandshakeRequest",
    request=(Field("mechanism", STRING),),
    response=(ERROR, Field("mechanisms", (Field("mechanism", STRING),))),
)
API_VERSIONS = Api(
    key=18,
    name="ApiVersionsRequest",
    request=(),
    response=(
        ERROR,
        Field("api_keys", (Field("api_key", INT16), Field("min_version", INT16), Field("max_version", INT16))),
        _throttle(1),
    ),
)
DESCRIBE_CONFIGS = Api(
    key=32,
    name="DescribeConfigsRequest",
    request=(
        Field(
            "resources",
            (
                Field("resource_type", INT8),
                Field("resource_name", STRING),
                Field("configuration_keys", (NAME,)),
            ),
        ),
        Field("include_synonyms", BOOL, 1),
    ),
    response=(
        _throttle(0),
        Field(
            "results",
            (
                ERROR,
                Field("error_message", STRING),
                Field("resource_type", INT8),
                Field("resource_name", STRING),
                Field(
                    "configs",
                    (
                        NAME,
                        Field("value", STRING),
                        Field("read_only", BOOL),
                        Field("is_default", BOOL, 0, 0),
                        Field("config_source", INT8, 1),
                        Field("is_sensitive", BOOL),
                        Field("synonyms", (NAME, Field("value", STRING), Field("source", INT8)), 1),
                    ),
                ),
            ),
        ),
    ),
)
DESCRIBE_LOG_DIRS = Api(
    key=35,
    name="DescribeLogDirsRequest",
    request=(Field("topics", (NAME, _ids("partitions"))),),
    response=(
        _throttle(0),
        Field(
            "results",
            (
                ERROR,
                Field("log_dir", STRING),
                _topics(
                    INDEX, Field("partition_size", INT64), Field("offset_lag", INT64), Field("is_future_key", BOOL)
                ),
            ),
        ),
    ),
)
SASL_AUTHENTICATE = Api(
    key=36,
    name="SaslAuthenticateRequest",
    request=(Field("auth_bytes", BYTES),),
    response=(
        ERROR,
        Field("error_message", STRING),
        Field("auth_bytes", BYTES),
        Field("session_lifetime_ms", INT64, 1),
    ),
)
