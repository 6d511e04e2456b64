"""Effective values of a topic or a broker, and their sources: the lines of DescribeConfigs. Pure.

After Kafka's `ConfigHelper`: a value's source is that of its first synonym, and synonyms go from the nearest to the
farthest: topic, this broker, all brokers, properties file, default.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from harness.broker.administration.topic_configs import BrokerLayers
from harness.broker.configs.config import PROPERTIES, BrokerConfig
from harness.broker.configs.config_types import Property, TypeCode, as_text
from harness.broker.configs.topic_properties import DYNAMIC, TOPIC_PROPERTIES, TopicProperty


class Source(IntEnum):
    """Kafka's numbers of a value's source."""

    TOPIC = 1
    BROKER = 2
    ALL_BROKERS = 3
    PROPERTIES_FILE = 4
    DEFAULT = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Synonym:
    """One value that applies, or would apply without a nearer one."""

    name: str
    value: str | None
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEntry:
    """One property."""

    name: str
    value: str | None
    read_only: bool
    source: Source
    type: TypeCode
    synonyms: tuple[Synonym, ...]


RETENTION = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
"""The only property whose other units are its synonyms; that of others, as `log.roll.hours`, are none in Kafka."""
_BY_NAME: dict[str, Property] = {prop.name: prop for prop in PROPERTIES}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigView:
    """All settings of one broker."""

    config: BrokerConfig
    layers: BrokerLayers

    def topic(self, own: Mapping[str, str]) -> list[ConfigEntry]:
        """Return every property of a topic, with its own values `own`."""
        return [self._of_topic(prop, own) for prop in TOPIC_PROPERTIES]

    def broker(self) -> list[ConfigEntry]:
        """Return every property of this broker."""
        return [self._of_broker(prop) for prop in PROPERTIES]

    def all_brokers(self) -> list[ConfigEntry]:
        """Return what is set for all brokers."""
        return [
            _entry(name, [Synonym(name=name, value=text, source=Source.ALL_BROKERS)], _BY_NAME[name], read_only=False)
            for name, text in sorted(self.layers.default.items())
        ]

    def _of_broker(self, prop: Property) -> ConfigEntry:
        own = self._synonyms(prop.name)
        others = [synonym for name in _units(prop.name) for synonym in self._synonyms(name) if synonym.value]
        entry = _entry(prop.name, own, prop, read_only=prop.name not in DYNAMIC)
        return replace(entry, synonyms=(*own, *others))

    def _of_topic(self, prop: TopicProperty, own: Mapping[str, str]) -> ConfigEntry:
        synonyms = []
        if prop.name in own:
            text = as_text(prop.parse.parse(own[prop.name]))
            synonyms.append(Synonym(name=prop.name, value=text, source=Source.TOPIC))
        broker = prop.brokers[0][0] if prop.brokers else ""
        synonyms += [s for name in (broker, *_units(broker)) if name for s in self._synonyms(name) if s.value]
        if prop.name in own:
            return _entry(prop.name, synonyms, prop, read_only=False)
        return ConfigEntry(
            name=prop.name,
            value=as_text(prop.inherited({**self.config.values, **self._dynamic()})),
            read_only=False,
            source=synonyms[0].source if synonyms else Source.DEFAULT,
            type=prop.parse.code,
            synonyms=tuple(synonyms),
        )

    def _dynamic(self) -> dict[str, object]:
        return {name: DYNAMIC[name].parse(text) for name, text in {**self.layers.default, **self.layers.own}.items()}

    def _synonyms(self, name: str) -> list[Synonym]:
        return [Synonym(name=name, value=text, source=source) for text, source in self._texts(name)]

    def _texts(self, name: str) -> Iterator[tuple[str | None, Source]]:
        for layer, source in (
            (self.layers.own, Source.BROKER),
            (self.layers.default, Source.ALL_BROKERS),
            (self.config.properties, Source.PROPERTIES_FILE),
        ):
            if name in layer:
                yield layer[name], source
        if _BY_NAME[name].default:
            yield _BY_NAME[name].default, Source.DEFAULT


def _units(name: str) -> list[str]:
    """Return the synonyms of a broker's property beside its own name: those in longer units."""
    return list(RETENTION[RETENTION.index(name) + 1 :]) if name in RETENTION else []


def _entry(name: str, synonyms: Sequence[Synonym], prop: Property | TopicProperty, *, read_only: bool) -> ConfigEntry:
    return ConfigEntry(
        name=name,
        value=synonyms[0].value if synonyms else None,
        read_only=read_only,
        source=synonyms[0].source if synonyms else Source.DEFAULT,
        type=prop.parse.code,
        synonyms=tuple(synonyms),
    )
