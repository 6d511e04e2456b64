"""I14: a control request with a stale epoch has no effect.

A broker obeys the newest controller that it knows, only requests for its own registration (KIP-380), and for a
partition only those that raise the leader epoch (Kafka's `ReplicaManager.becomeLeaderOrFollower`). StopReplica of an
older epoch than the replica's stops nothing, unless its topic is deleted (KIP-570).
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.findings import event, finding, phrase
from harness.analysis.frames import PARTITION_KEY, in_order
from harness.contracts.checks import Check, Settings

_LINE = ("broker", "incarnation", "seq")


class StaleRequests(Check):
    """Every control request that a broker applied, and every role that it took, in its own order."""

    name: ClassVar[str] = "I14"
    title: ClassVar[str] = "I14 stale-requests"
    promise: ClassVar[str] = (
        "A control request with a stale controller, broker or leader epoch has no effect (KIP-380, ReplicaManager)."
    )
    needs: ClassVar[tuple[str, ...]] = ("control_requests",)
    reads: ClassVar[tuple[str, ...]] = ("leadership_claims",)

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a request, or a partition of one, and one a role that was taken in an epoch that was over."""
        requests = facts["control_requests"].where(F.col("verdict") == "applied")
        return (
            self._obeyed(requests)
            .unionByName(self._stopped(requests))
            .unionByName(self._roles(facts["leadership_claims"]))
        )

    def _obeyed(self, requests: DataFrame) -> DataFrame:
        until_now = in_order("run_id", "broker", "incarnation", by=("seq",))
        old_controller = F.col("controller_epoch") < F.col("newest")
        earlier_life = F.col("request_broker_epoch").between(0, F.col("broker_epoch") - 1)
        wrong = F.when(
            old_controller,
            phrase("of controller epoch {controller_epoch} after one of epoch {newest}"),
        ).when(
            earlier_life,
            phrase("for registration {request_broker_epoch} in registration {broker_epoch}"),
        )
        rows = (
            requests.withColumn("newest", F.max("controller_epoch").over(until_now))
            .withColumn("wrong", wrong)
            .where(F.col("wrong").isNotNull())
        )
        return finding(
            rows,
            self.name,
            message="A stale control request has no effect: broker {broker} applied {api} of broker {sender} {wrong}.",
            evidence=F.array(
                event(
                    "control_requests",
                    *_LINE,
                    "api",
                    "sender",
                    "controller_epoch",
                    "newest",
                    "request_broker_epoch",
                    "broker_epoch",
                )
            ),
        )

    def _stopped(self, requests: DataFrame) -> DataFrame:
        """Once a replica is stopped, its epoch is unknown until a LeaderAndIsr gives it a role again."""
        stops = F.col("api") == "StopReplica"
        role_epoch = F.when(~stops, F.col("leader_epoch"))
        of_replica = in_order(*PARTITION_KEY, "broker", "incarnation", by=("seq",))
        rows = (
            requests.where(F.col("partition_verdict") == "applied")
            .withColumn("current", F.lag(role_epoch).over(of_replica))
            .where(stops & F.col("leader_epoch").between(0, F.col("current") - 1))
        )
        return finding(
            rows,
            self.name,
            message=(
                "A stale control request has no effect: broker {broker} stopped its replica of {topic}-{partition} for "
                "epoch {leader_epoch} when it was in epoch {current}."
            ),
            evidence=F.array(event("control_requests", *_LINE, "api", "sender", "leader_epoch", "current")),
        )

    def _roles(self, claims: DataFrame) -> DataFrame:
        rows = claims.where(F.col("leader_epoch") <= F.col("previous_leader_epoch"))
        return finding(
            rows,
            self.name,
            message=(
                "A stale control request has no effect: broker {broker} became {role} of {topic}-{partition} in epoch "
                "{leader_epoch} when it was in epoch {previous_leader_epoch}."
            ),
            evidence=F.array(
                event("leadership_claims", *_LINE, "role", "leader", "leader_epoch", "previous_leader_epoch")
            ),
        )


PLUGIN: type[Check] = StaleRequests
