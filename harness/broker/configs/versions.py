"""Names of Kafka's own versions in properties: `MetadataVersion.fromVersionString` of Kafka 3.9."""

from harness.broker.configs.config_types import ConfigType, TypeCode

_BEFORE_STEPS = ("0.8.0", "0.8.1", "0.8.2", "0.9.0")
_STEPS = {
    **dict.fromkeys(("0.10.2", "1.0", "1.1", "2.5", "2.6", "3.1", "3.2", "3.4", "3.8", "3.9"), 1),
    **dict.fromkeys(("0.10.0", "2.0", "2.2", "2.3", "2.4", "2.8", "3.0"), 2),
    **dict.fromkeys(("0.10.1", "0.11.0", "2.1", "2.7", "3.5", "3.6"), 3),
    "3.3": 4,
    "3.7": 5,
}
"""Number of steps to each release; its own name stands for the last."""
_AHEAD = {"4.0": 2}
"""3.9 does not know this release by name yet."""
_VERSIONS = {
    **{name: name for name in _BEFORE_STEPS},
    **{
        name: name
        for release, steps in (_STEPS | _AHEAD).items()
        for name in map(f"{release}-IV{{}}".format, range(steps))
    },
    **{release: f"{release}-IV{steps - 1}" for release, steps in _STEPS.items()},
}


def known_version(text: str) -> str:
    """Return the version of a text; a suffix after a release, as in 2.5.1, is ignored.

    Raises:
        ValueError: Kafka 3.9 knows no such version.
    """
    parts = 3 if text.startswith("0.") else 2
    name = text if text.rstrip(".").count(".") < parts else ".".join(text.split(".")[:parts])
    if name not in _VERSIONS:
        raise ValueError("must be a version that Kafka 3.9 knows, as 3.0 or 3.0-IV1")
    return _VERSIONS[name]


def _checked(text: str) -> str:
    known_version(text)
    return text


def _protocol_2_5(text: str) -> str:
    if known_version(text) != "2.5-IV0":
        raise ValueError("must be 2.5, which is the only one here")
    return text


VERSION = ConfigType(TypeCode.STRING, _checked)
"""Any of them."""
PROTOCOL_2_5 = ConfigType(TypeCode.STRING, _protocol_2_5)
"""The one that brokers use between each other here."""
