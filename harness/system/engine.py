"""Which engine judges? Apache Spark on this machine, unless another is chosen."""

import os
from enum import StrEnum

from harness.errors import ScenarioError
from harness.system.extras import require

ENGINE_VARIABLE = "CHAOS_ENGINE"
REMOTE_VARIABLE = "CHAOS_SPARK_REMOTE"
"""Address of a Spark Connect server, `sc://HOST:PORT`, that judges instead of an engine on this machine."""
CLIENT = ("grpc", "grpc_status", "zstandard")
"""Packages without which PySpark does not speak Spark Connect."""


class Engine(StrEnum):
    """What can judge on this machine."""

    SPARK = "spark"
    SAIL = "sail"


def choose_engine(name: str | None, master: str | None = None) -> None:
    """Let this process and its children judge with an engine; None leaves it at what was chosen before.

    Raises:
        ScenarioError: there is none of that name, a server was named too, or a `master` of Apache Spark, which does
            not judge.
        NotInstalled: the extra that it takes is not installed.
    """
    if name is not None:
        os.environ[ENGINE_VARIABLE] = name
    if chosen_remote():
        require(*CLIENT)
    elif chosen_engine() is Engine.SAIL:
        require("pysail", *CLIENT)
    if master and not by_jvm():
        raise ScenarioError("--master is an option of Apache Spark, and another engine judges: add --engine spark")


def chosen_engine() -> Engine:
    """Return what judges where no server is named.

    Raises:
        ScenarioError: there is none of the name that was chosen.
    """
    name = os.environ.get(ENGINE_VARIABLE) or Engine.SPARK
    if name not in set(Engine):
        raise ScenarioError(f"unknown engine {name!r}; known: {', '.join(Engine)}")
    return Engine(name)


def chosen_remote() -> str | None:
    """Return the address of the server that judges, if there is one.

    Raises:
        ScenarioError: an engine on this machine was chosen too.
    """
    address, engine = os.environ.get(REMOTE_VARIABLE), os.environ.get(ENGINE_VARIABLE)
    if address and engine:
        raise ScenarioError(
            f"{REMOTE_VARIABLE} names a server that judges, {ENGINE_VARIABLE}={engine} an engine here: set one of them"
        )
    return address or None


def by_jvm() -> bool:
    """Return whether Apache Spark judges in a JVM of this process.

    Raises:
        ScenarioError: as `chosen_engine` and `chosen_remote`.
    """
    return not chosen_remote() and chosen_engine() is Engine.SPARK
