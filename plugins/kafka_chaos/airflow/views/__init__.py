"""The pages of the plugin: a small FastAPI application that only reads, and that Airflow's own access checks guard."""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.types import Receive, Scope, Send


async def serve(scope: "Scope", receive: "Receive", send: "Send") -> None:
    """Answer as the application does; it is made at the first request, for FastAPI costs whoever only loads plugins."""
    await _application()(scope, receive, send)


@cache
def _application() -> "FastAPI":
    from kafka_chaos.airflow.views.app import create_app

    return create_app()
