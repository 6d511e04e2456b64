"""Which differences does docs/explanation/differences-from-kafka.md list? Those do not count, and scripts go on."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from harness.client_rules.scripts.script import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Intended:
    """A difference, and its reason."""

    apis: str
    place: str
    """Both are patterns: of the whole name of the API, and of the whole place of a field that differs."""
    reason: str
    fields: str = ""
    """A pattern at the start of the step's fields, as JSON."""


INTENDED = (
    Intended(
        apis="Produce",
        place=r"responses\[\]\.partition_responses\[\]\.(error_message False ≠ True|record_errors has 0 ≠ .*)",
        reason="no texts for refused records",
    ),
    Intended(apis="DescribeProducers", place=r".*error_message False ≠ True", reason="no texts for unknown partitions"),
    Intended(
        apis="Produce",
        place=r"responses\[\]\.partition_responses\[\]\.error_code 87 ≠ 32",
        reason="one of several faults is answered",
    ),
    Intended(
        apis="CreateTopics",
        place=r"topics\[\]\.error_code (17|37|38|39|40|42) ≠ (17|37|38|39|40|42)",
        reason="one of several faults is answered",
    ),
    Intended(
        apis="Fetch",
        place=r"responses\[\]\.partitions\[\]\.records has \d+ ≠ \d+: .* ≠ \[\]",
        reason="a fetch reads on in the next segment",
    ),
    Intended(
        apis="DescribeConfigs", place=r"results\[\].configs\[\].documentation False ≠ True", reason="no documentation"
    ),
    Intended(
        apis="DescribeConfigs",
        place=r"results\[\].configs\[\].read_only True ≠ False",
        reason="fewer properties of a broker can change",
    ),
    Intended(
        apis="IncrementalAlterConfigs|AlterConfigs|CreateTopics|CreatePartitions|Produce",
        place=r".*(error_code (3|37|39|40|42|76|87) ≠ -1|error_message True ≠ False)",
        reason="a malformed request has an error that says so",
    ),
    Intended(
        apis="Fetch",
        place=r"responses\[\]\.partitions\[\]\.error_code 6 ≠ 75",
        fields=r'.*"replica_id": \d',
        reason="a replica that is unknown",
    ),
    Intended(
        apis="ListOffsets",
        place=r"topics\[\]\.partitions\[\]\.(leader_epoch|offset|timestamp) \d+ ≠ -1",
        fields=r'.*"timestamp": \d',
        reason="a lookup goes on in the next segment",
    ),
    Intended(
        apis="ListOffsets",
        place=r"topics\[\]\.partitions\[\]\.(leader_epoch|offset|timestamp) -?\d+ ≠ \d+",
        fields=r'(?!.*"timestamp": (?!-3\b))',
        reason="a deleted record is not the youngest",
    ),
    Intended(
        apis="ElectLeaders", place=r" \{.* ≠ 'no answer'", reason="a partition that never had a leader is answered"
    ),
    Intended(
        apis="JoinGroup|SyncGroup",
        place=r" \{('throttle_time_ms': 0, )?'error_code': (25|27)\b.* ≠ 'no answer'",
        reason="a request of a member whose first one waits is answered",
    ),
    Intended(
        apis="AlterConfigs|IncrementalAlterConfigs",
        place=r"responses\[\]\.error_code 3 ≠ (40|42)",
        reason="one of several faults",
    ),
    Intended(
        apis="AlterConfigs|IncrementalAlterConfigs",
        place=r"responses\[\]\.error_code 42 ≠ 0",
        reason="no unknown property of a broker",
    ),
    Intended(
        apis="DeleteGroups|OffsetDelete",
        place=r"(results\[\]\.)?error_code 0 ≠ 69|topics has \d+ ≠ 0: .*",
        reason="an empty group outlives a topic",
    ),
    Intended(
        apis="JoinGroup",
        place=r"error_code 25 ≠ -1|member_id '.+' ≠ ''",
        fields=r'.*"group_instance_id": "',
        reason="an instance cannot take the id that another member was given",
    ),
    Intended(
        apis="OffsetCommit|TxnOffsetCommit", place=r".*error_code 25 ≠ 22", reason="an empty group outlives a topic"
    ),
    Intended(
        apis="JoinGroup",
        place=r"leader '\$m:\d' ≠ '\$m:\d'|members has \d+ ≠ \d+: .*",
        reason="which member leads after a leader that is gone",
    ),
    Intended(
        apis="JoinGroup",
        place=r"error_code 23 ≠ 25|generation_id ([2-9]|\d\d+) ≠ 1",
        reason="an empty group outlives a topic",
    ),
    Intended(
        apis="ListGroups",
        place=r"groups has \d+ ≠ \d+: \[.* ≠ \[\]|groups\[\]\.protocol_type '.+' ≠ ''",
        reason="an empty group outlives a topic",
    ),
    Intended(
        apis="DescribeGroups",
        place=r"groups\[\]\.(group_state 'Empty' ≠ 'Dead'|protocol_type '.+' ≠ '')",
        reason="an empty group outlives a topic",
    ),
    Intended(
        apis="FindCoordinator",
        place=r"coordinators\[\].error_(code 42 ≠ 15|message True ≠ False)",
        reason="no share groups",
    ),
)


def reason(step: Step, places: Sequence[str]) -> str:
    """Return why a step is answered differently; empty if a field of it differs without a known reason."""
    reasons = [_of(step, place) for place in places]
    return "; ".join(dict.fromkeys(reasons)) if all(reasons) else ""


def _of(step: Step, place: str) -> str:
    fields = json.dumps(step.fields)
    fitting = (
        each
        for each in INTENDED
        if re.fullmatch(each.apis, step.api) and re.fullmatch(each.place, place) and re.match(each.fields, fields)
    )
    return next((each.reason for each in fitting), "")
