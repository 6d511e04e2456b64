"""An administrator: asks for topics, configurations, leaders, replicas and groups, one request after the other.

With `transacts` it has a transaction of its own beside them.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import replace

from harness.broker.wire.error_codes import ErrorCode, described
from harness.broker.wire.transport import Message, PeerError
from harness.client_rules.administering import Action, Administering, Request
from harness.contracts.workloads import ClientPlan
from harness.simulation.clients.admin_requests import EXCHANGES, FINE, Addressee, Asked
from harness.simulation.clients.administrator_transaction import AdministratorTransaction
from harness.simulation.clients.coordinator import GROUP, TRANSACTION, Coordinator
from harness.simulation.clients.metadata import ClusterClient
from harness.simulation.clients.refusals import Refused
from harness.simulation.transport import MemoryTransport
from harness.store.recording import Recorder
from harness.values import NO_BROKER

COORDINATED = {Addressee.COORDINATOR: GROUP, Addressee.TRANSACTION_COORDINATOR: TRANSACTION}
"""Types of the keys that have a coordinator, by addressee."""
ASTRAY_SHARE = 0.1
"""How often a request for the controller or a coordinator goes to any broker."""
UNDECIDED = frozenset({ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND})
"""Errors of requests that may have been carried out."""


class SimulatedAdministrator:
    """One process."""

    def __init__(
        self,
        plan: ClientPlan,
        recorder: Recorder,
        transport: MemoryTransport,
        bootstrap: Iterable[tuple[str, int]],
        *,
        several_directories: bool,
    ) -> None:
        """`several_directories`: whether a broker has more than one, so that replicas can move between them."""
        actions = frozenset(Action) if several_directories else frozenset(Action) - {Action.MOVE_REPLICA}
        self._rules = Administering(plan, recorder, actions)
        self._client = ClusterClient(
            transport,
            bootstrap,
            plan.topics,
            client_id=plan.process,
            timeout_s=plan.parameters["request_timeout_ms"] / 1000,
            changed=lambda: None,
        )
        self._coordinators: dict[tuple[str, int], Coordinator] = {}
        transaction = AdministratorTransaction(plan.process, self._client)
        self._in_transaction = {
            Action.WRITE: transaction.write,
            Action.SEND_OFFSETS: transaction.send_offsets,
            Action.END_TRANSACTION: transaction.end,
        }

    async def run(self, stop: asyncio.Event) -> None:
        """Make one request after the other until `stop` is set."""
        while not stop.is_set():
            request = self._rules.next()
            try:
                await self._carry_out(request)
                self._rules.done(request)
            except Refused as error:
                self._look_again()
                if error.code in UNDECIDED:
                    self._rules.unanswered(request, described(error.code))
                else:
                    self._rules.refused(request, described(error.code), error.code)
            except PeerError as error:
                self._look_again()
                self._rules.unanswered(request, str(error))
            await asyncio.sleep(self._rules.pause_s)
        self._client.close()

    def _look_again(self) -> None:
        self._client.refresh_soon()
        self._coordinators.clear()

    async def _carry_out(self, request: Request) -> None:
        """Ask the broker that a request is for; raises PeerError, or Refused with the first error of its answer."""
        if request.action in self._in_transaction:
            await self._in_transaction[request.action](request)
            return
        exchange = EXCHANGES[request.action]
        answer = await self._answer(request)
        errors = [code for code in exchange.codes(answer) if code not in FINE]
        if errors:
            raise Refused(ErrorCode(errors[0]))

    async def _answer(self, request: Request) -> Message:
        exchange, brokers = EXCHANGES[request.action], self._client.broker_ids
        if not brokers:
            raise PeerError("no broker is known")
        some = brokers[int(request.lucky * 1000) % len(brokers)]
        controller = self._client.controller_id
        goes_astray = request.lucky < ASTRAY_SHARE
        to_controller = exchange.addressee is Addressee.CONTROLLER and not goes_astray
        broker_id = controller if to_controller and controller != NO_BROKER else some
        version, timeout_ms = exchange.version(request), request.timeout_ms or int(self._client.timeout_s * 1000)
        asked = Asked(broker_id=broker_id, brokers=brokers, timeout_ms=timeout_ms, version=version)
        if request.action is Action.MOVE_REPLICA:
            described = EXCHANGES[Action.DESCRIBE_LOG_DIRS]
            answer = await self._client.ask(broker_id, described.message(request, asked), described.version(request))
            asked = replace(asked, directories=[result.log_dir for result in answer.results])
        message = exchange.message(request, asked)
        if exchange.addressee in COORDINATED and not goes_astray:
            key = (request.group, COORDINATED[exchange.addressee])
            coordinator = self._coordinators.setdefault(key, Coordinator(key[0], self._client, key[1]))
            return await coordinator.ask(message, version)
        return await self._client.ask(broker_id, message, version)
