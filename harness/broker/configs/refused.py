"""Kafka's properties that cannot be honoured here: each is refused by name, with the reason and the remedy."""

from collections.abc import Mapping
from types import MappingProxyType

_NO_TLS = "there is no TLS here: remove the line, and set the listeners to PLAINTEXT"
_NO_SASL = "there is no SASL here: remove the line, and set the listeners to PLAINTEXT"
_NO_CLASSES = "classes of Java cannot be loaded here: remove the line"
_NO_AUTHORIZER = "there is no authorizer here, every client may do everything: remove the line"
_NO_TOKENS = "there are no delegation tokens here: remove the line"
_NO_QUOTAS = "there are no quotas here, nothing is throttled: remove the line"
_NO_TIERS = "there is no tiered storage here: remove the line"
_ZOOKEEPER = "this broker runs in ZooKeeper mode: set zookeeper.connect and broker.id, and remove the line"
_LISTENERS = "Kafka 3.0 has removed it: set listeners and advertised.listeners"

REFUSED: Mapping[str, str] = MappingProxyType(
    {
        "advertised.host.name": _LISTENERS,
        "advertised.port": _LISTENERS,
        "allow.everyone.if.no.acl.found": _NO_AUTHORIZER,
        "alter.config.policy.class.name": _NO_CLASSES,
        "client.quota.callback.class": _NO_CLASSES,
        "control.plane.listener.name": "controllers use inter.broker.listener.name: remove the line",
        "controller.listener.names": _ZOOKEEPER,
        "controller.quorum.bootstrap.servers": _ZOOKEEPER,
        "controller.quorum.voters": _ZOOKEEPER,
        "create.topic.policy.class.name": _NO_CLASSES,
        "delegation.token.master.key": _NO_TOKENS,
        "delegation.token.secret.key": _NO_TOKENS,
        "follower.replication.throttled.rate": _NO_QUOTAS,
        "host.name": _LISTENERS,
        "leader.replication.throttled.rate": _NO_QUOTAS,
        "metadata.log.dir": _ZOOKEEPER,
        "node.id": _ZOOKEEPER,
        "password.encoder.old.secret": "no passwords are kept here: remove the line",
        "password.encoder.secret": "no passwords are kept here: remove the line",
        "port": _LISTENERS,
        "principal.builder.class": _NO_CLASSES,
        "quota.consumer.default": _NO_QUOTAS,
        "quota.producer.default": _NO_QUOTAS,
        "replica.alter.log.dirs.io.max.bytes.per.second": _NO_QUOTAS,
        "replica.selector.class": "no consumer is sent to a follower here: remove the line",
        "security.providers": _NO_CLASSES,
        "super.users": _NO_AUTHORIZER,
        "zookeeper.clientCnxnSocket": "ZooKeeper is reached without TLS: remove the line",
    }
)

REFUSED_FAMILIES: Mapping[str, str] = MappingProxyType(
    {
        "confluent.": "it belongs to another distribution than Apache Kafka: remove the line",
        "listener.name.": "listeners have no properties of their own here: remove the line",
        "remote.": _NO_TIERS,
        "rlmm.": _NO_TIERS,
        "rsm.": _NO_TIERS,
        "sasl.": _NO_SASL,
        "ssl.": _NO_TLS,
        "zookeeper.ssl.": "ZooKeeper is reached without TLS: remove the line",
    }
)
"""By the prefix of their names."""


def refusal(name: str) -> str | None:
    """Return why a property is refused and the remedy; None for one that Kafka does not know either."""
    families = (why for prefix, why in REFUSED_FAMILIES.items() if name.startswith(prefix))
    return REFUSED.get(name) or next(families, None)
