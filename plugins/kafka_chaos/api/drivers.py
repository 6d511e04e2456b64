"""What a driver or a system of your own is made of: the contracts, and what drivers of processes share."""

from harness.cluster.driver import (
    BrokerStatus,
    CanKill,
    CanPause,
    CanRunClients,
    ClusterDriver,
    ClusterRequest,
    ClusterStatus,
    RunExecutor,
    ZookeeperStatus,
)
from harness.cluster.processes.driver import ProcessDriver
from harness.cluster.supervised_driver import SupervisedDriver
from harness.cluster.systems.python import PythonBroker
from harness.cluster.systems.system import System
from harness.errors import ClusterError, DeadlineError, ScenarioError

__all__ = [
    "BrokerStatus",
    "CanKill",
    "CanPause",
    "CanRunClients",
    "ClusterDriver",
    "ClusterError",
    "ClusterRequest",
    "ClusterStatus",
    "DeadlineError",
    "ProcessDriver",
    "PythonBroker",
    "RunExecutor",
    "ScenarioError",
    "SupervisedDriver",
    "System",
    "ZookeeperStatus",
]
