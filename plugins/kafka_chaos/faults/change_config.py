"""Changes the configuration of brokers one after the other, or of a topic, at run time. Heals by restoring it.

Each broker is asked to change itself, and the next one when the change is in force. A `topic` is changed through the
first broker of the target. Checks read the configuration of topics, so set `min.insync.replicas` on a `topic`.

Confirmed by: the value that each broker of the target reports.
"""

from typing import Annotated, ClassVar

from pydantic import BaseModel, Field

from harness.broker.wire.error_codes import ErrorCode
from harness.contracts.administration import ask, late
from harness.contracts.faults import Disturbance, Effect, Fault, FaultContext, Injection, confirmed
from harness.contracts.parameters import Strict
from harness.contracts.targets import Target
from harness.errors import ClusterError, DeadlineError
from harness.system.waiting import until

TOPIC, BROKER = 2, 4
"""Kinds of resources (`ConfigResource.Type`)."""
OWN = {TOPIC: 1, BROKER: 2}
"""The source of values that are set for it alone (`ConfigSource`)."""
SET, DELETE = 0, 1
"""What to do with a value (`AlterConfigOp.OpType`)."""

Values = dict[str, str | None]
"""By name; None for what is not set for a topic or broker itself."""


class Parameters(Strict):
    """Parameters of a change of configuration."""

    config: Annotated[dict[str, str], Field(min_length=1, description="The properties to set, by Kafka's names")]
    topic: Annotated[str, Field(description="The topic; empty: each broker of the target in turn")] = ""
    done_timeout_s: Annotated[
        float, Field(gt=0, le=100, description="Deadline for each broker to apply and to log the change")
    ] = 30.0


class ChangeConfig(Fault):
    """Changes configuration that brokers accept at run time, by IncrementalAlterConfigs (KIP-339)."""

    name: ClassVar[str] = "change-config"
    disturbs: ClassVar[frozenset[Disturbance]] = frozenset()
    requires: ClassVar[tuple[str, ...]] = ("ask",)
    may_overlap: ClassVar[bool] = True
    Parameters: ClassVar[type[BaseModel]] = Parameters

    def resources(self, parameters: BaseModel) -> frozenset[str]:
        """Return the topic's configuration; those of brokers go with the brokers."""
        assert isinstance(parameters, Parameters)
        return frozenset({f"the configuration of {parameters.topic}"} if parameters.topic else ())

    async def prepare(
        self,
        context: FaultContext,
        target: Target,
        brokers: tuple[int, ...],
        parameters: BaseModel,
        *,
        duration_s: float,
    ) -> Injection:
        """Record the present values."""
        injection = Injection(fault=self.name, targets=brokers, parameters=parameters.model_dump(mode="json"))
        before = {str(broker): await _own_values(context, injection, broker) for broker in _changers(injection)}
        return injection.with_state(before=before)

    async def inject(self, context: FaultContext, injection: Injection) -> Injection:
        """Change one after the other, each when the one before reports the new values."""
        wanted: Values = injection.parameters["config"]
        for broker in _changers(injection):
            await _change(context, injection, broker, wanted)
        return injection

    async def confirm(self, context: FaultContext, injection: Injection) -> Effect:
        """Check that every target reports the new values."""
        wanted: Values = injection.parameters["config"]
        try:
            for broker in injection.targets:
                await _has(context, injection, broker, wanted)
        except DeadlineError as error:
            return await late(context, injection.targets, error)
        of = injection.parameters["topic"] or "each"
        values = ", ".join(f"{name}={value}" for name, value in sorted(wanted.items()))
        return confirmed(f"brokers {list(injection.targets)} say that {of} has {values}")

    async def heal(self, context: FaultContext, injection: Injection) -> None:
        """Restore the earlier values; those that were not set are deleted."""
        for broker in _changers(injection):
            before: Values = injection.state["before"][str(broker)]
            await _change(context, injection, broker, before)


def _changers(injection: Injection) -> tuple[int, ...]:
    """Return the brokers that get the request."""
    return injection.targets[:1] if injection.parameters["topic"] else injection.targets


async def _change(context: FaultContext, injection: Injection, broker: int, values: Values) -> None:
    """Set values at a broker, unless it has them, and wait until it reports them.

    Raises:
        ClusterError: it refuses them.
        DeadlineError: it does not answer, or does not change.
    """

    async def answered() -> tuple[int, str]:
        return await _ask_to_set(context, injection, broker, values)

    own = await until(
        lambda: _own_values(context, injection, broker),
        lambda _: True,
        what=f"what is set at broker {broker}",
        timeout_s=injection.parameters["done_timeout_s"],
    )
    if own == values:
        return
    error, message = await until(
        answered,
        lambda answer: answer[0] != ErrorCode.UNKNOWN_SERVER_ERROR,  # for example, its session has ended
        what=f"an answer of broker {broker}",
        timeout_s=injection.parameters["done_timeout_s"],
    )
    if error != ErrorCode.NONE:
        raise ClusterError(f"broker {broker} refuses {values}: {message or error}")
    await _has(context, injection, broker, values)


async def _has(context: FaultContext, injection: Injection, broker: int, values: Values) -> None:
    """Wait until a broker says that these values are set; raises DeadlineError."""
    await until(
        lambda: _own_values(context, injection, broker),
        lambda seen: seen == values,
        what=f"{values} at broker {broker}",
        timeout_s=injection.parameters["done_timeout_s"],
    )


def _resource(injection: Injection, broker: int) -> tuple[int, str]:
    topic = injection.parameters["topic"]
    return (TOPIC, topic) if topic else (BROKER, str(broker))


async def _own_values(context: FaultContext, injection: Injection, broker: int) -> Values:
    """Return the values that a broker reports as set for itself, or the topic; raises ClusterError without a report."""
    from harness.broker.wire.messages import DescribeConfigsRequest

    kind, name = _resource(injection, broker)
    names = sorted(injection.parameters["config"])
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=names
    )
    answer = await ask(context, broker, DescribeConfigsRequest(resources=[resource], include_synonyms=False), 1)
    (result,) = answer.results
    if result.error_code != ErrorCode.NONE:
        raise ClusterError(f"broker {broker} describes nothing: {result.error_message or result.error_code}")
    own = {line.name: line.value for line in result.configs if line.config_source == OWN[kind]}
    return {each: own.get(each) for each in names}


async def _ask_to_set(context: FaultContext, injection: Injection, broker: int, values: Values) -> tuple[int, str]:
    """Return the error code and message of a broker's answer to a change."""
    from harness.broker.wire.messages import IncrementalAlterConfigsRequest

    kind, name = _resource(injection, broker)
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    configs = [
        resource.AlterableConfig(name=key, config_operation=DELETE if value is None else SET, value=value)
        for key, value in sorted(values.items())
    ]
    request = IncrementalAlterConfigsRequest(
        resources=[resource(resource_type=kind, resource_name=name, configs=configs)], validate_only=False
    )
    (result,) = (await ask(context, broker, request, 0)).responses
    return result.error_code, result.error_message or ""


PLUGIN: type[Fault] = ChangeConfig
