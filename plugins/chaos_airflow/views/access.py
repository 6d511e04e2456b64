"""Access: a user with read access to a DAG's runs in Airflow may read the chaos runs it made, and no other user may.

Airflow mounts a plugin's application without any authentication, so every route depends on `Reader`.
"""

from functools import cache
from typing import Annotated, Literal

from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag
from fastapi import Depends, HTTPException, Request, status

from chaos_airflow.runs import Origin

COMMAND_LINE = "chaos_experiment"
"""The DAG whose readers may also read what was run by hand: that DAG is the same thing with a form."""
SWEEPS = "chaos_simulate"
"""The DAG whose readers may read sweeps."""
DAG_IDS = (COMMAND_LINE, "chaos_nightly", "chaos_repeat", SWEEPS, "chaos_smoke")
"""All DAGs that make runs; a user without read access to any of them is refused."""


class Reader:
    """The user of one request.

    Raises HTTPException 403 on making when the user may read the runs of no chaos DAG.
    """

    def __init__(self, request: Request, user: GetUserDep) -> None:
        self._request = request
        self._user = user
        self.may_read = cache(lambda dag_id: self._may("GET", DagAccessEntity.RUN, dag_id))
        if not any(self.may_read(dag_id) for dag_id in DAG_IDS):
            raise _forbidden()

    def may_see(self, origin: Origin | None) -> bool:
        """Return whether the user may read a run of this origin."""
        return self.may_read(dag_of(origin))

    def may_stop(self, origin: Origin | None) -> bool:
        """Return whether the user may end the tasks of a run of this origin."""
        return origin is not None and self._may("PUT", DagAccessEntity.TASK_INSTANCE, origin.dag_id)

    def must_read(self, dag_id: str) -> None:
        """Refuse the request unless the user may read the runs of a DAG."""
        if not self.may_read(dag_id):
            raise _forbidden()

    def _may(self, method: Literal["GET", "PUT"], entity: DagAccessEntity, dag_id: str) -> bool:
        check = requires_access_dag(method, entity, param_dag_id=dag_id)
        try:
            check(self._request, self._user)
        except HTTPException as refusal:
            if refusal.status_code != status.HTTP_403_FORBIDDEN:
                raise
            return False
        return True


def dag_of(origin: Origin | None) -> str:
    """Return the DAG whose readers may read a run of this origin."""
    return origin.dag_id if origin else COMMAND_LINE


ReaderDep = Annotated[Reader, Depends(Reader)]


def _forbidden() -> HTTPException:
    return HTTPException(status.HTTP_403_FORBIDDEN, "You may not read these runs.")
