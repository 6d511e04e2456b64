"""ACL APIs without an authorizer: every client is told SECURITY_DISABLED, for each thing that it asks."""

import pytest

from harness.broker.handlers.acls import AclHandlers
from harness.broker.handlers.apis import APIS, bound
from harness.broker.wire.codec import decode_response, encode_request
from harness.broker.wire.dispatch import Dispatcher
from harness.broker.wire.messages import ApiKey, CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest
from harness.broker.wire.transport import Message

_ACL = CreateAclsRequest.AclCreation
_Filter = DeleteAclsRequest.DeleteAclsFilter
ENTRY = {
    "resource_type": 2,
    "resource_name": "t",
    "principal": "User:a",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}
FILTER = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize(
    ("api", "request_", "errors"),
    [
        pytest.param(
            ApiKey.DESCRIBE_ACLS,
            DescribeAclsRequest(**FILTER),  # type: ignore[arg-type]
            [(54, "No Authorizer is configured on the broker")],
            id="described",
        ),
        pytest.param(
            ApiKey.CREATE_ACLS,
            CreateAclsRequest(creations=[_ACL(**ENTRY), _ACL(**ENTRY)]),  # type: ignore[arg-type]
            [(54, "No Authorizer is configured.")] * 2,
            id="created",
        ),
        pytest.param(
            ApiKey.DELETE_ACLS,
            DeleteAclsRequest(filters=[_Filter(**FILTER)]),  # type: ignore[arg-type]
            [(54, "No Authorizer is configured.")],
            id="deleted",
        ),
    ],
)
async def test_acls_are(api: ApiKey, request_: Message, errors: list[tuple[int, str]], version: int) -> None:
    dispatcher = Dispatcher(APIS, bound(AclHandlers()))
    frame = encode_request(request_, version, correlation_id=7, client_id="c")
    response = await dispatcher.dispatch(bytes(frame[4:]), "CLIENT", "peer:1")
    assert response is not None
    answer = decode_response(api, version, bytes(response[4:]), correlation_id=7)
    parts = getattr(answer, "results", None) or getattr(answer, "filter_results", None) or [answer]
    assert [(each.error_code, each.error_message) for each in parts] == errors
