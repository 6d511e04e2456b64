"""A client that plays recorded scripts of calls to a broker over TCP, and compares the answers."""

import asyncio
import threading

from harness.broker.wire.tcp import TcpTransport
from harness.client_rules.scripts.asking import Asking
from harness.client_rules.scripts.target import Target
from harness.contracts.workloads import ClientPlan
from harness.store.history import JsonlWriter, now_ns
from harness.store.recording import Recorder


def play_scripts(plan: ClientPlan, operations: JsonlWriter, stop: threading.Event) -> None:
    """Play one script after the other until `stop` is set."""
    host, _, port = plan.bootstrap_servers.partition(",")[0].rpartition(":")
    asking = Asking(plan, Recorder(plan.process, operations.write, now_ns, plan.first_index))
    asyncio.run(asking.run(Target(TcpTransport(), host, int(port)), stop.is_set))
