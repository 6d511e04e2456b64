"""What a workload of your own is made of: the contract, and how a client writes down what it does."""

from harness.contracts.parameters import Strict
from harness.contracts.workloads import ClientPlan, Stop, Workload
from harness.store.history import JsonlWriter, Operation, OpKind, OpType, now_ns
from harness.store.recording import Recorder

__all__ = [
    "ClientPlan",
    "JsonlWriter",
    "OpKind",
    "OpType",
    "Operation",
    "Recorder",
    "Stop",
    "Strict",
    "Workload",
    "now_ns",
]
