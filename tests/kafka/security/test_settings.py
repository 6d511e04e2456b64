"""What Kafka's client settings become for each library, where their secrets come from, and what is refused."""

from pathlib import Path

import pytest

from harness.errors import ClusterError
from harness.kafka.security.references import absolute, whole
from harness.kafka.security.settings import (
    KNOWN,
    for_librdkafka,
    of_controllers,
    problem_of,
    security_of,
    zookeeper_security_of,
)

USER = {"sasl.username": "me", "sasl.password": "${env:PW}"}
SASL = {"security.protocol": "SASL_PLAINTEXT", **USER}
JAAS = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="me" password="${env:PW}";'
PEM = "-----BEGIN CERTIFICATE-----\nQQ==\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN PRIVATE KEY-----\nQQ==\n-----END PRIVATE KEY-----\n"


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with files to refer to, and a variable with a password."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PW", 'p"w')
    (tmp_path / "ca.pem").write_text(f"a remark\n{PEM}", encoding="utf-8")
    (tmp_path / "own.pem").write_text(KEY + PEM + PEM, encoding="utf-8")
    (tmp_path / "store.jks").write_bytes(b"\xfe\xed\xfe\xed\0\0")
    (tmp_path / "store.p12").write_bytes(b"0\x82")
    (tmp_path / "one").write_text("of a file\n", encoding="utf-8")
    (tmp_path / "client.properties").write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nacks=all\nsasl.username=me\n"
        "sasl.password=of the file\nssl.truststore.location=ca.pem\n",
        encoding="utf-8",
    )


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        pytest.param({}, {}, id="nothing is asked for"),
        pytest.param({"security.protocol": "plaintext"}, {}, id="nor is it said in small letters"),
        pytest.param(
            SASL,
            {
                "security.protocol": "sasl_plaintext",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "me",
                "sasl.password": 'p"w',
            },
            id="a user, PLAIN by default",
        ),
        pytest.param(
            {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": JAAS},
            {
                "security.protocol": "sasl_plaintext",
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.username": "me",
                "sasl.password": 'p"w',
            },
            id="a user of JAAS, with a quote in a value that is referred to",
        ),
        pytest.param(
            {"security.protocol": "SSL", "ssl.truststore.type": "PEM", "ssl.truststore.location": "ca.pem"},
            {"security.protocol": "ssl", "ssl.endpoint.identification.algorithm": "https", "ssl.ca.pem": PEM},
            id="an authority of Java's name",
        ),
        pytest.param(
            {
                "security.protocol": "SSL",
                "ssl.ca.location": "ca.pem",
                "ssl.keystore.location": "own.pem",
                "ssl.key.password": "${file:one}",
                "ssl.endpoint.identification.algorithm": "",
            },
            {
                "security.protocol": "ssl",
                "ssl.endpoint.identification.algorithm": "none",
                "ssl.ca.pem": PEM,
                "ssl.certificate.pem": PEM + PEM,
                "ssl.key.pem": KEY,
                "ssl.key.password": "of a file",
            },
            id="a certificate of its own, and no check of names",
        ),
        pytest.param(
            {"file": "client.properties", "sasl.username": "other"},
            {
                "security.protocol": "sasl_plaintext",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "other",
                "sasl.password": "of the file",
            },
            id="a properties file, of which other settings are left, and which is overridden",
        ),
        pytest.param(
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.token.endpoint.url": "https://a/token",
                "sasl.oauthbearer.client.credentials.client.id": "it",
                "sasl.oauthbearer.client.credentials.client.secret": "${file:client.properties:sasl.password}",
            },
            {
                "security.protocol": "sasl_plaintext",
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.token.endpoint.url": "https://a/token",
                "sasl.oauthbearer.client.id": "it",
                "sasl.oauthbearer.client.secret": "of the file",
            },
            id="client credentials",
        ),
        pytest.param(
            {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER", "sasl.username": "me"},
            {
                "security.protocol": "sasl_plaintext",
                "sasl.mechanism": "OAUTHBEARER",
                "enable.sasl.oauthbearer.unsecure.jwt": True,
                "sasl.oauthbearer.config": "principal=me",
            },
            id="an unsecured token",
        ),
    ],
)
def test_each_setting_has_its_name_in_librdkafka(settings: dict[str, str], expected: dict[str, object]) -> None:
    assert for_librdkafka(settings) == expected


def test_controllers_and_zookeeper_have_settings_of_their_own() -> None:
    settings = SASL | {
        "controller.sasl.mechanism": "SCRAM-SHA-256",
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.ssl.ca.location": "ca.pem",
        "zookeeper.sasl.username": "keeper",
        "zookeeper.sasl.password": "${file:one}",
    }
    assert (security_of(settings).described, security_of(of_controllers(settings)).described) == (
        "SASL_PLAINTEXT with PLAIN",
        "SASL_PLAINTEXT with SCRAM-SHA-256",
    )
    keeper = zookeeper_security_of(settings)
    assert (keeper.username, keeper.password, keeper.tls is not None) == ("keeper", "of a file", True)
    assert zookeeper_security_of(SASL).tls is None
    assert "of a file" not in repr(keeper) + repr(security_of(settings))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        pytest.param({"security.protocol": "TLS"}, "security.protocol must be one of PLAINTEXT, SSL", id="no protocol"),
        pytest.param(
            SASL | {"sasl.mechanism": "GSSAPI"}, "sasl.mechanism must be one of PLAIN, SCRAM", id="no mechanism"
        ),
        pytest.param({"security.protocol": "SASL_SSL"}, "PLAIN takes sasl.username and sasl.password", id="no user"),
        pytest.param(SASL | {"sasl.mechanism": "OAUTHBEARER", "sasl.username": ""}, "OAUTHBEARER takes", id="no token"),
        pytest.param({"sasl.password": "${env:NONE}"}, "variable NONE, which the client settings", id="no variable"),
        pytest.param({"sasl.password": "${file:none}"}, "none, which the client settings name, cannot", id="no file"),
        pytest.param({"sasl.password": "${file:client.properties:x}"}, "name the key x of client.prop", id="no key"),
        pytest.param({"security.protocol": "SSL", "ssl.ca.location": "no.pem"}, "no.pem cannot be read", id="no store"),
        pytest.param(
            {"security.protocol": "SSL", "ssl.truststore.location": "store.jks"},
            "type JKS, which only Java reads; convert it: keytool -importkeystore",
            id="a store of Java's",
        ),
        pytest.param(
            {
                "security.protocol": "SSL",
                "ssl.truststore.location": "store.p12",
                "ssl.truststore.password": "${env:PW}",
            },
            "not PEM, and not a PKCS12 store that ssl.truststore.password opens",
            id="another password",
        ),
        pytest.param(
            {"security.protocol": "SSL", "ssl.certificate.location": "ca.pem"},
            "certificate without its key",
            id="no key ",
        ),
        pytest.param({"security.protocol": "SSL", "ssl.cipher": "x"}, "unknown client settings: ssl.cipher", id="name"),
    ],
)
def test_what_cannot_be_used_is_refused_without_a_secret(settings: dict[str, str], message: str) -> None:
    with pytest.raises(ClusterError, match=message) as refused:
        security_of(settings)
    assert 'p"w' not in str(refused.value)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        pytest.param(USER, "", id="a reference"),
        pytest.param({"sasl.jaas.config": JAAS}, "", id="a reference in JAAS"),
        pytest.param({"sasl.password": "pw"}, "sasl.password is a secret: write ${env:NAME}", id="a password"),
        pytest.param({"ssl.keystore.key": KEY}, "ssl.keystore.key is a secret", id="a key"),
        pytest.param(
            {"sasl.jaas.config": 'M required username="me" password="pw";'}, "sasl.jaas.config is a secret", id="JAAS"
        ),
        pytest.param({"sasl.jaas.config": "M required password=pw;"}, "sasl.jaas.config is a secret", id="bare JAAS"),
        pytest.param({"zookeeper.sasl.password": "x"}, "zookeeper.sasl.password is a secret", id="ZooKeeper's"),
        pytest.param({"sasl.mechanisms": "PLAIN"}, "unknown client setting sasl.mechanisms (did you mean", id="a name"),
        pytest.param({"ssl.ca.location": "ca.pem"}, "ssl.ca.location is a path, and has to be an abs", id="a path"),
        pytest.param({"file": "/client.properties"}, "", id="an absolute path"),
    ],
)
def test_what_a_user_writes_has_references_in_place_of_secrets(settings: dict[str, str], problem: str) -> None:
    assert problem_of(settings)[: len(problem)] == problem
    assert bool(problem_of(settings)) == bool(problem)


def test_relative_paths_begin_where_the_settings_stand() -> None:
    settings = {"ssl.ca.location": "ca.pem", "sasl.password": "${file:one}", "sasl.username": "${env:PW}", "file": "/a"}
    assert absolute(settings, Path("/etc")) == {
        "ssl.ca.location": "/etc/ca.pem",
        "sasl.password": "${file:/etc/one}",
        "sasl.username": "${env:PW}",
        "file": "/a",
    }
    assert whole({"file": str(Path.cwd() / "client.properties")})["ssl.truststore.location"] == str(
        Path.cwd() / "ca.pem"
    )
    assert {"sasl.jaas.config", "ssl.truststore.location", "zookeeper.ssl.client.enable"} <= KNOWN
