"""Which versions of which APIs the broker advertises, and which of them it serves.

The ranges are those of Kafka 2.5 below the flexible versions of the client APIs. They are not to be trimmed: clients
infer what a broker can do from them, and kafka-python even the record format.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import ApiKey, ApiVersionsRequest, ApiVersionsResponse

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_FIRST_VERSION_WITH_SOFTWARE = 3


@dataclass(frozen=True, slots=True)
class VersionRange:
    """The versions of one API."""

    advertised_min: int
    max: int
    served_min: int
    """A request below it closes the connection, even where it is advertised."""

    def serves(self, version: int) -> bool:
        """Whether a request of this version is answered."""
        return self.served_min <= version <= self.max


def _versions(lowest: int, highest: int, *, served_from: int | None = None) -> VersionRange:
    return VersionRange(lowest, highest, lowest if served_from is None else served_from)


VERSIONS: dict[ApiKey, VersionRange] = {
    # librdkafka up to 2.11 does not compress when version 0 is missing (KAFKA-18659); Kafka 4 refuses 0 to 2 as well.
    ApiKey.PRODUCE: _versions(0, 8, served_from=3),
    ApiKey.FETCH: _versions(4, 11),
    ApiKey.LIST_OFFSETS: _versions(1, 5),
    # librdkafka encodes "all topics" of version 9 and up with stray bytes.
    ApiKey.METADATA: _versions(0, 8),
    # Requests without a broker epoch cannot be fenced (KIP-380), so older controllers are not served.
    ApiKey.LEADER_AND_ISR: _versions(0, 4, served_from=4),
    ApiKey.STOP_REPLICA: _versions(0, 3, served_from=2),
    ApiKey.UPDATE_METADATA: _versions(0, 6, served_from=6),
    ApiKey.CONTROLLED_SHUTDOWN: _versions(1, 3, served_from=3),
    ApiKey.OFFSET_COMMIT: _versions(2, 7),
    ApiKey.OFFSET_FETCH: _versions(1, 5),
    ApiKey.FIND_COORDINATOR: _versions(0, 2),
    ApiKey.API_VERSIONS: _versions(0, 3),
    ApiKey.CREATE_TOPICS: _versions(2, 4),
    ApiKey.DELETE_TOPICS: _versions(1, 3),
    ApiKey.DELETE_RECORDS: _versions(0, 1),
    ApiKey.INIT_PRODUCER_ID: _versions(0, 1),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: _versions(0, 3),
    ApiKey.DESCRIBE_CONFIGS: _versions(1, 3),
    ApiKey.ALTER_CONFIGS: _versions(0, 1),
    ApiKey.DESCRIBE_LOG_DIRS: _versions(0, 1),
    ApiKey.CREATE_PARTITIONS: _versions(0, 1),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _versions(0, 0),
    ApiKey.ELECT_LEADERS: _versions(0, 1),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _versions(0, 0),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _versions(0, 0),
    # Kafka has it from 2.8 on; Java's tools ask for it.
    ApiKey.DESCRIBE_CLUSTER: _versions(0, 1),
}


def unsupported_version() -> ApiVersionsResponse:
    """Return the answer to an ApiVersions request of an unknown version, to be encoded as version 0 (KIP-511)."""
    return ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=_advertised([ApiKey.API_VERSIONS]), throttle_time_ms=0
    )


def api_versions(request: ApiVersionsRequest, version: int, keys: Iterable[ApiKey]) -> ApiVersionsResponse:
    """Return the advertised versions of `keys`, or INVALID_REQUEST when the client does not name itself (KIP-511)."""
    if version >= _FIRST_VERSION_WITH_SOFTWARE and not (
        _SOFTWARE.fullmatch(request.client_software_name) and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=[], throttle_time_ms=0)
    return ApiVersionsResponse(error_code=ErrorCode.NONE, api_keys=_advertised(keys), throttle_time_ms=0)


def _advertised(keys: Iterable[ApiKey]) -> list[ApiVersionsResponse.ApiVersion]:
    return [
        ApiVersionsResponse.ApiVersion(
            api_key=int(key), min_version=VERSIONS[key].advertised_min, max_version=VERSIONS[key].max
        )
        for key in sorted(keys)
    ]
