"""May a DAG disturb an existing cluster, and with which credentials? A connection of Airflow's says both.

The connection `chaos_<cluster id>` states that runs of this Airflow may disturb that cluster. Its extras are the values
of the variables that `${env:NAME}` in the cluster file names. They come from Airflow's secrets backend, and exist only
in the process of a task.
"""

import logging
import os
import re
from typing import TYPE_CHECKING, Any

from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowNotFoundException

if TYPE_CHECKING:
    from harness.scenario.model import Scenario

log = logging.getLogger(__name__)

PREFIX = "chaos_"
_VARIABLE = re.compile(r"\$\{env:([^}]+)\}")


def connection_id(cluster_id: str) -> str:
    """Return the id of the connection that stands for a cluster."""
    return PREFIX + cluster_id


def owned(scenario: "Scenario") -> bool:
    """Return whether Airflow has a connection for the existing cluster of a scenario; take its credentials if so.

    True for a scenario that has none, which starts its own.
    """
    place = scenario.cluster.external
    if place is None:
        return True
    try:
        connection = Connection.get(connection_id(place.id))
    except AirflowNotFoundException:
        log.info("no connection %s: runs may not disturb this cluster", connection_id(place.id))
        return False
    extras: dict[str, Any] = connection.extra_dejson
    for name in sorted({name for value in place.client.values() for name in _VARIABLE.findall(value)} & extras.keys()):
        os.environ[name] = str(extras[name])
    return True
