"""How does a broker run in a container: on which image, by which command, with what mounted?"""

from dataclasses import dataclass, field
from pathlib import Path

BROKER_DATA = "/var/lib/kafka"
BROKER_LOGS = "/var/log/kafka"
BROKER_SYNCS = "/var/log/kafka-syncs"
"""The file in which it notes what it has synced."""
BROKER_CONFIG = "/etc/kafka/broker.properties"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contained:
    """One broker in a container; what is the same for all is the driver's."""

    image: str
    """The part of the images that it runs on: broker or java."""
    command: list[str]
    """After the image's own entry point, with paths as the container has them."""
    files: dict[Path, str] = field(default_factory=dict)
    """Path in the container by path on the host, of files and folders beside its properties; read only."""
