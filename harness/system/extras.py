"""What only an extra of the project brings, and the sentence that names the extra where it is not installed."""

import importlib.util
from pathlib import Path

from harness.errors import NotInstalled

EXTRAS = {
    "airflow": "airflow",
    "confluent_kafka": "clients",
    "docker": "docker",
    "great_expectations": "expectations",
    "prometheus_client": "metrics",
    "puresasl": "clients",
    **dict.fromkeys(("pysail", "grpc", "grpc_status", "zstandard"), "sail"),
}
"""The extra that brings a package, by the name under which it is imported."""
_CHECKOUT = Path(__file__).resolve().parents[2]


def require(*packages: str) -> None:
    """Return when all these packages are installed.

    Raises:
        NotInstalled: names those that are not, and their extras.
    """
    if sentence := lacking(*packages):
        raise NotInstalled(sentence)


def lacking(*packages: str) -> str:
    """Return which of these packages are not installed, and how to install them; empty when all are."""
    absent = [package for package in packages if not _installed(package)]
    extras = ",".join(sorted({EXTRAS[package] for package in absent}))
    return f"not installed: {', '.join(absent)}; {_command(extras)}" if absent else ""


def not_installed(error: BaseException) -> NotInstalled | None:
    """Return what stands for an import that failed, if an extra would have brought what it lacks."""
    package = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    sentence = lacking(package) if package in EXTRAS else ""
    return NotInstalled(sentence) if sentence else None


def _command(extras: str) -> str:
    """Return how to install extras, of a checkout or of a wheel."""
    if (_CHECKOUT / "pyproject.toml").exists():
        return f"in the project's folder: pip install '.[{extras}]'"
    return f"pip install 'kafka-chaos-harness[{extras}]'"


def _installed(package: str) -> bool:
    """A folder of that name on the path, as `docker/` in a checkout, is not the package: it has no origin."""
    spec = importlib.util.find_spec(package)
    return spec is not None and spec.origin is not None
