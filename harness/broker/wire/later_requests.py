"""Messages of later releases and of KRaft: steps of a scenario send them, and the built-in broker does not serve them.

kafka-python ships no spec of those that are declared here.
"""

from kafka.protocol.admin import DescribeQuorumRequest, DescribeQuorumResponse
from kafka.protocol.api_message import ApiMessage

from harness.broker.wire import specs
from harness.broker.wire.messages import RESPONSES


class ConsumerGroupHeartbeatRequest(ApiMessage, load_json=specs):
    """A member joins a consumer group, stays in it, or leaves it (KIP-848)."""


class ConsumerGroupHeartbeatResponse(ApiMessage, load_json=specs):
    """The member's epoch, and its partitions if they have changed."""


LATER_REQUESTS: tuple[type[ApiMessage], ...] = (ConsumerGroupHeartbeatRequest, DescribeQuorumRequest)
RESPONSES |= {each.API_KEY: each for each in (ConsumerGroupHeartbeatResponse, DescribeQuorumResponse)}
