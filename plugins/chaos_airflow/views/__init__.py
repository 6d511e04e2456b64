"""The pages of the plugin: a small FastAPI application that only reads, and that Airflow's own access checks guard."""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


async def serve(scope: "Scope", receive: "Receive", send: "Send") -> None:
    """Answer as the application does; made at the first request, as loading the plugin must not import FastAPI."""
    await _application()(scope, receive, send)


@cache
def _application() -> "ASGIApp":
    from chaos_airflow.views.app import create_app
    from chaos_airflow.views.headers import Revalidated, SecurityHeaders

    # around all of it: what answers for a bug is the application's outermost part
    return SecurityHeaders(Revalidated(create_app()))
