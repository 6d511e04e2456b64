"""Scripts of client calls, played to the only broker of a cluster and compared with what Kafka 3.9.1 has answered.

A script has names of its own and needs nothing but a broker with the properties of `scripts-light`,
`slow-scripts-light` or `restarted-scripts-light`: the answers were recorded with these.
"""

import threading
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, Field

from harness.contracts.parameters import Strict
from harness.contracts.workloads import ClientPlan, Workload
from harness.scenario.seeds import derived_seed
from harness.store.history import JsonlWriter


class Parameters(Strict):
    """What the scenario may say about the scripts."""

    players: Annotated[int, Field(ge=1, le=32, description="Processes that play scripts")] = 1
    scripts: Annotated[
        Literal["quick", "slow", "restarts"],
        Field(
            description="quick; slow: those that wait for retention, the cleaner and the expiry of offsets; restarts:"
            " those in which two faults of the scenario stop the broker cleanly and then kill it; quick ones follow"
        ),
    ] = "quick"
    at_once: Annotated[int, Field(ge=1, le=100, description="Scripts that a player plays at the same time")] = 1
    interval_s: Annotated[float, Field(gt=0, le=3600, description="Between two scripts of a player")] = 0.2


class PlayScripts:
    """The load of all kinds of clients, call by call."""

    name: ClassVar[str] = "play-scripts"
    Parameters: ClassVar[type[BaseModel]] = Parameters

    def clients(
        self, parameters: BaseModel, *, bootstrap_servers: str, topics: dict[str, int], seed: int
    ) -> list[ClientPlan]:
        """Return the players, which are stopped first."""
        assert isinstance(parameters, Parameters)
        return [
            ClientPlan(
                process=f"script-player-{number}",
                workload=self.name,
                role="script-player",
                bootstrap_servers=bootstrap_servers,
                topics=topics,
                seed=derived_seed(seed, "script-player", number),
                parameters=parameters.model_dump(mode="json", exclude={"players"}),
            )
            for number in range(1, parameters.players + 1)
        ]

    def run(self, plan: ClientPlan, operations: JsonlWriter, stop: threading.Event) -> None:
        """Play scripts until `stop` is set."""
        from kafka_chaos.workloads.clients.script_player import play_scripts

        play_scripts(plan, operations, stop)


PLUGIN: type[Workload] = PlayScripts
