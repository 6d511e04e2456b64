"""What do client settings say, under Kafka's names? One value, from which every library gets its own settings."""

import difflib
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from harness.errors import ClusterError
from harness.kafka.security.files import in_memory
from harness.kafka.security.references import FILE, relative_in, resolved, secret_in, whole
from harness.kafka.security.stores import identity, trusted

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
OAUTH = "sasl.oauthbearer."
_STORES = (
    *("truststore.location", "truststore.password", "truststore.type", "truststore.certificates", "ca.location"),
    *("keystore.location", "keystore.password", "keystore.type", "keystore.key", "keystore.certificate.chain"),
    *("certificate.location", "key.location", "key.password", "endpoint.identification.algorithm"),
)
KNOWN = frozenset(
    {
        FILE,
        "security.protocol",
        "sasl.mechanism",
        "sasl.jaas.config",
        "sasl.username",
        "sasl.password",
        f"{OAUTH}token.endpoint.url",
        f"{OAUTH}client.id",
        f"{OAUTH}client.secret",
        f"{OAUTH}scope",
        f"{OAUTH}client.credentials.client.id",
        f"{OAUTH}client.credentials.client.secret",
        "sasl.login.callback.handler.class",
        "ssl.protocol",
        "ssl.enabled.protocols",
        "zookeeper.ssl.client.enable",
        "zookeeper.sasl.username",
        "zookeeper.sasl.password",
        *(f"ssl.{name}" for name in _STORES),
        *(f"zookeeper.ssl.{name}" for name in _STORES),
    }
)
"""What can be set; the last names are Kafka's for a broker's own ZooKeeper client, and two for its user."""
OF_CONTROLLERS = "controller."
"""How names begin of settings for controllers of a quorum, where their listener asks for others than brokers'."""
_GROUPS = (OF_CONTROLLERS, "security.", "sasl.", "ssl.", "zookeeper.")
_JAAS_OPTION = re.compile(r'(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^"\s;]+))')
_OF_JAAS = {
    "username": "sasl.username",
    "password": "sasl.password",
    "clientId": f"{OAUTH}client.id",
    "clientSecret": f"{OAUTH}client.secret",
    "scope": f"{OAUTH}scope",
    "unsecuredLoginStringClaim_sub": "sasl.username",
}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Tls:
    """How one end of a TLS connection proves itself and the other."""

    ca_pem: str = ""
    """Empty for the authorities that the system trusts."""
    chain_pem: str = ""
    key_pem: str = ""
    key_password: str | None = None
    checks_name: bool = True
    """Whether the other end's certificate must have the name that it was reached by."""

    @classmethod
    def of(cls, settings: Mapping[str, str], prefix: str = "ssl.") -> Self:
        """Return it from settings without references; raises ClusterError for stores that cannot be read."""
        chain, key = identity(settings, prefix)
        return cls(
            ca_pem=trusted(settings, prefix),
            chain_pem=chain,
            key_pem=key,
            key_password=settings.get(f"{prefix}key.password"),
            checks_name=bool(settings.get(f"{prefix}endpoint.identification.algorithm", "https")),
        )

    def context(self) -> ssl.SSLContext:
        """Return it for Python; raises ClusterError for what is no certificate or no key."""
        try:
            context = ssl.create_default_context(cadata=self.ca_pem or None)
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # Java does not require key identifiers either
            context.check_hostname = self.checks_name
            if self.chain_pem:
                with in_memory(self.chain_pem + self.key_pem) as path:
                    context.load_cert_chain(path, password=self.key_password or "")
        except (ssl.SSLError, ValueError) as error:
            raise ClusterError(f"the certificates of the client settings cannot be used: {error}") from None
        return context


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Security:
    """How a client proves itself to the listeners of a cluster, and they to it."""

    protocol: str = "PLAINTEXT"
    mechanism: str = ""
    """Empty without SASL."""
    username: str = ""
    password: str = ""
    oauth: dict[str, str] = field(default_factory=dict)
    """Settings of OAUTHBEARER without their common prefix."""
    tls: Tls | None = None

    @property
    def described(self) -> str:
        """The protocol and mechanism, for messages."""
        return described(self.protocol, [self.mechanism] if self.mechanism else [])


def described(protocol: str, mechanisms: list[str]) -> str:
    """Return a protocol and its mechanisms in words."""
    return f"{protocol} with {' or '.join(mechanisms)}" if mechanisms else protocol


def problem_of(settings: Mapping[str, str]) -> str:
    """Return why settings, as a user writes them, cannot be used; empty if they can. No value is in the message."""
    if unknown := sorted(name for name in settings if name.removeprefix(OF_CONTROLLERS) not in KNOWN):
        near = difflib.get_close_matches(unknown[0], KNOWN, n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        return f"unknown client setting {unknown[0]}{hint}; known: {', '.join(sorted(KNOWN))}"
    if secret := secret_in(settings):
        return f"{secret} is a secret: write ${{env:NAME}}, ${{file:PATH}} or ${{file:PATH:KEY}} in its place"
    if relative := relative_in(settings):
        return f"{relative} is a path, and has to be an absolute one outside a cluster file"
    return ""


def of_controllers(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings with which controllers are reached: those of brokers, but where they have their own."""
    stated = whole(settings)
    own = {
        name.removeprefix(OF_CONTROLLERS): value for name, value in stated.items() if name.startswith(OF_CONTROLLERS)
    }
    return stated | own


def security_of(settings: Mapping[str, str]) -> Security:
    """Return what settings say, references and all.

    Raises:
        ClusterError: a setting is unknown, missing or refers to nothing; the message has no secret.
    """
    stated = _stated(settings)
    protocol, mechanism = stated.get("security.protocol", "PLAINTEXT").upper(), ""
    if protocol not in PROTOCOLS:
        raise ClusterError(f"security.protocol must be one of {', '.join(PROTOCOLS)}")
    if protocol.startswith("SASL"):
        mechanism = stated.get("sasl.mechanism", "PLAIN").upper()
        if mechanism not in MECHANISMS:
            raise ClusterError(f"sasl.mechanism must be one of {', '.join(MECHANISMS)}")
    security = Security(
        protocol=protocol,
        mechanism=mechanism,
        username=stated.get("sasl.username", ""),
        password=stated.get("sasl.password", ""),
        oauth={name.removeprefix(OAUTH): value for name, value in stated.items() if name.startswith(OAUTH)},
        tls=Tls.of(stated) if protocol.endswith("SSL") else None,
    )
    by_password = mechanism and mechanism != "OAUTHBEARER"
    if by_password and not (security.username and security.password):
        raise ClusterError(f"{mechanism} takes sasl.username and sasl.password, or sasl.jaas.config with both")
    if mechanism == "OAUTHBEARER" and not (security.username or "token.endpoint.url" in security.oauth):
        raise ClusterError(f"OAUTHBEARER takes {OAUTH}token.endpoint.url, or sasl.username for an unsecured token")
    return security


def _stated(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings without references, and with the options of `sasl.jaas.config` under names of their own."""
    stated = {name.replace(".credentials.client.", "."): value for name, value in whole(settings).items()}
    known = {*KNOWN, *(OF_CONTROLLERS + name for name in KNOWN)}
    if unknown := sorted(name for name in stated if name.startswith(_GROUPS) and name not in known):
        raise ClusterError(f"unknown client settings: {', '.join(unknown)}; known: {', '.join(sorted(KNOWN))}")
    options = _JAAS_OPTION.findall(stated.pop("sasl.jaas.config", ""))
    of_jaas = {_OF_JAAS[name]: _unquoted(quoted) or bare for name, quoted, bare in options if name in _OF_JAAS}
    return resolved(of_jaas | {name: value for name, value in stated.items() if name.startswith(_GROUPS)})


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ZookeeperSecurity:
    """How a session proves itself to ZooKeeper: by SASL (DIGEST-MD5), by TLS, by both or by neither."""

    username: str = ""
    password: str = ""
    tls: Tls | None = None


def zookeeper_security_of(settings: Mapping[str, str]) -> ZookeeperSecurity:
    """Return what settings say of ZooKeeper; raises ClusterError as `security_of`."""
    stated = _stated(settings)
    secured = stated.get("zookeeper.ssl.client.enable", "false").lower() == "true"
    return ZookeeperSecurity(
        username=stated.get("zookeeper.sasl.username", ""),
        password=stated.get("zookeeper.sasl.password", ""),
        tls=Tls.of(stated, "zookeeper.ssl.") if secured else None,
    )


def for_librdkafka(settings: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings under librdkafka's names; empty for a cluster that asks for nothing.

    Raises:
        ClusterError: as `security_of`.
    """
    security = security_of(settings)
    own: dict[str, Any] = {"security.protocol": security.protocol.lower()}
    if security.mechanism:
        own["sasl.mechanism"] = security.mechanism
    if security.mechanism == "OAUTHBEARER":
        own |= _oauth_for_librdkafka(security)
    elif security.mechanism:
        own |= {"sasl.username": security.username, "sasl.password": security.password}
    if (tls := security.tls) is not None:
        own["ssl.endpoint.identification.algorithm"] = "https" if tls.checks_name else "none"
        own |= {"ssl.ca.pem": tls.ca_pem} if tls.ca_pem else {}
        if tls.chain_pem:
            own |= {"ssl.certificate.pem": tls.chain_pem, "ssl.key.pem": tls.key_pem}
            own |= {"ssl.key.password": tls.key_password} if tls.key_password else {}
    return own if own != {"security.protocol": "plaintext"} else {}


def _oauth_for_librdkafka(security: Security) -> dict[str, Any]:
    if "token.endpoint.url" in security.oauth:
        return {"sasl.oauthbearer.method": "oidc"} | {OAUTH + name: value for name, value in security.oauth.items()}
    return {"enable.sasl.oauthbearer.unsecure.jwt": True, "sasl.oauthbearer.config": f"principal={security.username}"}
