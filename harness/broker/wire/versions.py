"""Which versions of an API does the broker advertise and serve, and what does it answer to ApiVersions?"""

import re
from collections.abc import Mapping
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


def versions(lowest: int, highest: int, *, served_from: int | None = None) -> VersionRange:
    """Return the range from `lowest` to `highest`, all of it advertised, and served from `served_from` on."""
    return VersionRange(lowest, highest, lowest if served_from is None else served_from)


def unsupported_version(served: VersionRange) -> ApiVersionsResponse:
    """Return the answer to an ApiVersions request of an unknown version, to be encoded as version 0 (KIP-511)."""
    return ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=_advertised({ApiKey.API_VERSIONS: served}),
        throttle_time_ms=0,
    )


def api_versions(
    request: ApiVersionsRequest, version: int, served: Mapping[ApiKey, VersionRange]
) -> ApiVersionsResponse:
    """Return the advertised versions, or INVALID_REQUEST when the client does not name itself (KIP-511)."""
    if version >= _FIRST_VERSION_WITH_SOFTWARE and not (
        _SOFTWARE.fullmatch(request.client_software_name) and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=[], throttle_time_ms=0)
    return ApiVersionsResponse(error_code=ErrorCode.NONE, api_keys=_advertised(served), throttle_time_ms=0)


def _advertised(served: Mapping[ApiKey, VersionRange]) -> list[ApiVersionsResponse.ApiVersion]:
    return [
        ApiVersionsResponse.ApiVersion(
            api_key=int(key), min_version=served[key].advertised_min, max_version=served[key].max
        )
        for key in sorted(served)
    ]
