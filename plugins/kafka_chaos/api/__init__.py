"""Start a cluster, disturb it, record and judge from Python; modules of this package have what plugins are made of.

    with Cluster(brokers=3) as cluster:
        cluster.create_topic("orders")
        cluster.kill_leader("orders", 0)

`run` carries out a scenario and `judge` judges a recorded history, as `chaos run` and `chaos judge` do.
"""

from harness.cluster.capabilities import Direction, Side
from harness.errors import ClusterError, DeadlineError, HarnessError, PluginError, Refused, ScenarioError
from harness.verdict import FaultVerdict, ObjectiveVerdict, SystemVerdict
from kafka_chaos.api.blocking import Cluster
from kafka_chaos.api.cluster import AsyncCluster
from kafka_chaos.api.judging import judge, judge_async, run, run_async

__all__ = [
    "AsyncCluster",
    "Cluster",
    "ClusterError",
    "DeadlineError",
    "Direction",
    "FaultVerdict",
    "HarnessError",
    "ObjectiveVerdict",
    "PluginError",
    "Refused",
    "ScenarioError",
    "Side",
    "SystemVerdict",
    "judge",
    "judge_async",
    "run",
    "run_async",
]
