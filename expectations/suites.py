"""The suites: which expectations each fact must meet. `suites/*.json` holds the same, for people and other tools."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from great_expectations.core.expectation_suite import ExpectationSuite
from great_expectations.expectations.core.expect_column_values_to_be_between import ExpectColumnValuesToBeBetween
from great_expectations.expectations.core.expect_column_values_to_be_in_set import ExpectColumnValuesToBeInSet
from great_expectations.expectations.core.expect_column_values_to_not_be_null import ExpectColumnValuesToNotBeNull

from expectations.committed_offsets import ExpectCommittedOffsetsNeverToRegress
from expectations.leader_epochs import ExpectLeaderEpochsToIncrease, ExpectOneLeaderPerLeaderEpoch
from harness.analysis import schemas

PARTITION = ["run_id", "topic", "partition"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """One suite and the fact that it is about."""

    name: str
    fact: str
    build: Callable[[], ExpectationSuite]


def leader_epochs() -> ExpectationSuite:
    """Return what holds for `leader_epochs`; a leader that is only claimed has no place in ZooKeeper's order."""
    return ExpectationSuite(
        name="leader_epochs",
        expectations=[
            ExpectLeaderEpochsToIncrease(key_columns=[*PARTITION, "life"], order_column="zxid"),
            ExpectOneLeaderPerLeaderEpoch(key_columns=PARTITION),
            ExpectColumnValuesToNotBeNull(column="leader"),
            ExpectColumnValuesToBeBetween(column="leader_epoch", min_value=0),
        ],
    )


def committed_offsets() -> ExpectationSuite:
    """Return what holds for `committed_offsets`; rows that do not count have no place in the order."""
    return ExpectationSuite(
        name="committed_offsets",
        expectations=[
            ExpectCommittedOffsetsNeverToRegress(
                key_columns=["run_id", "group", "topic", "partition"], order_column="counts_ns", kind_column="kind"
            ),
            ExpectColumnValuesToBeBetween(column="offset", min_value=-1),
            ExpectColumnValuesToBeInSet(column="outcome", value_set=["ok", "fail", "info"]),
        ],
    )


SUITES: tuple[Suite, ...] = (
    Suite(name="leader_epochs", fact=schemas.LEADER_EPOCHS.name, build=leader_epochs),
    Suite(name="committed_offsets", fact=schemas.COMMITTED_OFFSETS.name, build=committed_offsets),
)


def as_json(suite: Suite) -> str:
    """Return a suite as Great Expectations stores it, versions and ids left out."""
    expectations = [expectation.configuration.to_json_dict() for expectation in suite.build().expectations]
    return json.dumps({"name": suite.name, "expectations": expectations, "meta": {}}, indent=2) + "\n"


def stored_at(suite: Suite) -> Path:
    """Return where the stored form of a suite lies."""
    return Path(__file__).parent / "suites" / f"{suite.name}.json"
