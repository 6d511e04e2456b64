"""Situations of transactions, request by request: what do coordinators, leaders and groups answer and store?

    python -m tools.side_by_side.transactions [SITUATION ...] [--check]

`transactions-3.9.json` has what two brokers of Kafka 3.9.1 with `PROPERTIES` answered, and the bytes that they stored
in `__transaction_state`. A test plays the same to this project's brokers in virtual time. `--check` compares Kafka's
answers with the recorded ones instead of recording them; the exit status is 1 when they differ.
"""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

from harness.broker.wire.tcp import TcpTransport
from harness.broker.wire.transport import Transport
from tools.peers import running
from tools.side_by_side import transaction_data, transaction_offsets, transaction_states
from tools.side_by_side.brokers import Brokers, RealBrokers
from tools.side_by_side.recording import record_or_check
from tools.side_by_side.transaction_script import Script
from tools.side_by_side.transaction_states import Situation

RECORDED = Path(__file__).with_name("transactions-3.9.json")
PROPERTIES = {
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "transactional.id.expiration.ms": "15000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "1000",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "group.initial.rebalance.delay.ms": "0",
}
BROKERS = 2

SITUATIONS: tuple[Situation, ...] = (
    *transaction_states.SITUATIONS,
    *transaction_data.SITUATIONS,
    *transaction_offsets.SITUATIONS,
)


async def play(situation: Situation, transport: Transport, brokers: Brokers) -> list[str]:
    """Return what a cluster answers and stores in a situation."""
    script = Script(transport, brokers, topic=situation.__name__.replace("_", "-"))
    await script.set_up()
    await situation(script)
    return script.transcript


def asked_of_kafka(situations: Sequence[Situation]) -> dict[str, list[str]]:
    """Return what Kafka answers in situations, one after the other on one cluster."""
    with (
        tempfile.TemporaryDirectory(prefix="chaos-benchmark-") as folder,
        running("kafka", Path(folder), brokers=BROKERS, properties=PROPERTIES) as peer,
    ):
        return {each.__name__: asyncio.run(play(each, TcpTransport(), RealBrokers(peer))) for each in situations}


def main() -> int:
    """Play situations to real Kafka, and keep or compare what it says."""
    return record_or_check(RECORDED, SITUATIONS, asked_of_kafka)


if __name__ == "__main__":
    raise SystemExit(main())
