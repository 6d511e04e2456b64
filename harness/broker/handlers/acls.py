"""DescribeAcls, CreateAcls and DeleteAcls: without an authorizer, as in Kafka, each is answered SECURITY_DISABLED."""

from harness.broker.wire.dispatch import RequestContext
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import (
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)

NO_AUTHORIZER = "No Authorizer is configured."
NO_AUTHORIZER_TO_DESCRIBE = "No Authorizer is configured on the broker"
"""Kafka's own two sentences."""

_Created = CreateAclsResponse.AclCreationResult
_Deleted = DeleteAclsResponse.DeleteAclsFilterResult


class AclHandlers:
    """Answers requests about access control (`AclApis`)."""

    async def describe(self, request: DescribeAclsRequest, context: RequestContext) -> DescribeAclsResponse:
        """Return one error for the request."""
        return DescribeAclsResponse(
            throttle_time_ms=0,
            error_code=ErrorCode.SECURITY_DISABLED,
            error_message=NO_AUTHORIZER_TO_DESCRIBE,
            resources=[],
        )

    async def create(self, request: CreateAclsRequest, context: RequestContext) -> CreateAclsResponse:
        """Return an error for every entry."""
        refused = _Created(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
        return CreateAclsResponse(throttle_time_ms=0, results=[refused for _ in request.creations])

    async def delete(self, request: DeleteAclsRequest, context: RequestContext) -> DeleteAclsResponse:
        """Return an error for every filter."""
        refused = _Deleted(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER, matching_acls=[])
        return DeleteAclsResponse(throttle_time_ms=0, filter_results=[refused for _ in request.filters])
