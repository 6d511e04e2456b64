"""A consume-transform-produce member: carries out its rules with librdkafka's consumer and transactional producer."""

import logging
import time

from harness.client_rules import steps
from harness.client_rules.piping import Piping
from harness.contracts.workloads import ClientPlan, Stop
from harness.store.history import JsonlWriter, now_ns
from harness.store.recording import Recorder
from kafka_chaos.workloads.clients.subscriber import Subscriber, identity_in
from kafka_chaos.workloads.clients.transactor import TransactionalProducers

log = logging.getLogger(__name__)


class Pipe(Subscriber):
    """Carries out the rules of one member."""

    _rules: Piping

    def __init__(self, plan: ClientPlan, rules: Piping, stop: Stop) -> None:
        super().__init__(plan, rules, stop)
        self._producers = TransactionalProducers(plan, rules.sending)
        self._read_as: object = None
        """Its identity when it read the last records: librdkafka drops that of a member that is out of its group, and
        the coordinator takes offsets without one (KIP-447)."""

    def run(self) -> object:
        """Carry out the rules, until they end after `stop` is set."""
        whole = super().run()
        self._producers.close()
        return whole

    def act(self, step: steps.Step) -> steps.StepResult:
        """Do one step."""
        if isinstance(step, steps.SendOffsets) and self._read_as is None:
            return steps.NO_MEMBER_YET
        if isinstance(step, steps.TransactionStep):
            return self._producers.act(step, self._read_as)
        self._producers.poll()
        answer = super().act(step)
        metadata = self._consumer.consumer_group_metadata() if answer.records else None
        if identity_in(metadata)[1] >= 0:
            self._read_as = metadata
        return answer


def transform(plan: ClientPlan, operations: JsonlWriter, stop: Stop) -> None:
    """Be a member until `stop` is set; then work until the group reaches the end, if there is time, and leave."""
    recorder = Recorder(plan.process, operations.write, now_ns, plan.first_index)
    rules = Piping(plan, recorder, time.monotonic, at_once=lambda: stop.at_once)
    whole = Pipe(plan, rules, stop).run()
    log.info("pipe.complete process=%s group_at_the_end=%s", plan.process, whole)
