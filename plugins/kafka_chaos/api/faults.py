"""What a fault of your own is made of: the contract, its answers, and the capabilities of drivers that it may use."""

from harness.cluster.capabilities import (
    CanDelay,
    CanIsolate,
    CanPartition,
    CanProbe,
    CanReset,
    Direction,
    Side,
    Slowness,
)
from harness.cluster.driver import CanKill, CanPause, ClusterDriver
from harness.contracts.faults import (
    Disturbance,
    Effect,
    Fault,
    FaultContext,
    Injection,
    NoParameters,
    confirmed,
    confirmed_once,
    inconclusive,
    mismatch,
)
from harness.contracts.parameters import Strict
from harness.contracts.targets import EVERY_ROLE, Role, Target
from harness.system.process_state import ProcessState
from harness.system.waiting import until

__all__ = [
    "EVERY_ROLE",
    "CanDelay",
    "CanIsolate",
    "CanKill",
    "CanPartition",
    "CanPause",
    "CanProbe",
    "CanReset",
    "ClusterDriver",
    "Direction",
    "Disturbance",
    "Effect",
    "Fault",
    "FaultContext",
    "Injection",
    "NoParameters",
    "ProcessState",
    "Role",
    "Side",
    "Slowness",
    "Strict",
    "Target",
    "confirmed",
    "confirmed_once",
    "inconclusive",
    "mismatch",
    "until",
]
