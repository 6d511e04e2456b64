"""A real Kafka that asks for TLS and SASL, started apart from the harness: one process, and one for its ZooKeeper."""

import datetime
import ipaddress
import signal
import socket
import subprocess
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)

from harness.cluster.systems.kafka import jars
from harness.cluster.systems.kafka.releases import release_of

PASSWORD = "secret-ß-of-the-user"
STORE_PASSWORD = "secret-of-the-store"
ADMIN_PASSWORD = "secret-of-the-admin"
SECRETS = {"USER_PASSWORD": PASSWORD, "STORE_PASSWORD": STORE_PASSWORD, "ADMIN_PASSWORD": ADMIN_PASSWORD}
"""By the environment variable that holds it."""
USER = "chaos"
CLUSTER_ID = "j9KTpdNPRMKxMmSK201HcQ"
"""Of a cluster without ZooKeeper; another one chooses its own."""
LOGGING = """\
log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %c: %m%n
"""
_SASL = "org.apache.kafka.common.security"
_DAY = datetime.timedelta(days=1)


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


class Certificates:
    """An authority, what it has signed for a server and for a client, and a stranger's; as files."""

    def __init__(self, folder: Path) -> None:
        self.ca, self.other_ca = folder / "ca.pem", folder / "other-ca.pem"
        self.server, self.client = folder / "server.pem", folder / "client.pem"
        self.client_store, self.trust_store = folder / "client.p12", folder / "trust.p12"
        key, ca = _signed("an authority", None)
        self.ca.write_bytes(ca.public_bytes(Encoding.PEM))
        self.other_ca.write_bytes(_signed("another one", None)[1].public_bytes(Encoding.PEM))
        for path in (self.server, self.client):
            own_key, own = _signed(path.stem, (key, ca))
            private = own_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            path.write_bytes(private + own.public_bytes(Encoding.PEM) + ca.public_bytes(Encoding.PEM))
        sealed = BestAvailableEncryption(STORE_PASSWORD.encode())
        self.client_store.write_bytes(pkcs12.serialize_key_and_certificates(b"client", own_key, own, [ca], sealed))
        self.trust_store.write_bytes(pkcs12.serialize_key_and_certificates(None, None, None, [ca], sealed))


Signer = tuple[ec.EllipticCurvePrivateKey, x509.Certificate]


def _signed(name: str, by: Signer | None) -> Signer:
    key, subject = (
        ec.generate_private_key(ec.SECP256R1()),
        x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]),
    )
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(by[1].subject if by else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + _DAY)
        .add_extension(x509.BasicConstraints(ca=by is None, path_length=None), critical=True)
    )
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return key, builder.sign(by[0] if by else key, hashes.SHA256())


class SecuredKafka:
    """Processes of its own, which end with `stop`; nothing of the harness starts or knows them."""

    def __init__(self, folder: Path, release: str) -> None:
        self.folder, self._libraries = folder, jars.class_path(release_of(release))
        folder.mkdir(parents=True, exist_ok=True)
        self.certificates = Certificates(folder)
        self.sasl, self.mutual, self.metadata = (free_port() for _ in range(3))
        """Ports: SASL_SSL, SSL with client certificates, and of the controller or of ZooKeeper."""
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def stop(self) -> None:
        """End all of it."""
        for process in self._processes.values():
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()

    def pid(self, name: str) -> int:
        """Return the process of a server."""
        return self._processes[name].pid

    def settings(self) -> dict[str, str]:
        """Return the client settings of its user, with the names of variables in place of secrets."""
        scram = self.zookeeper is None
        ca = str(self.certificates.ca)
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512" if scram else "PLAIN",
            "sasl.username": USER,
            "sasl.password": "${env:USER_PASSWORD}",
            "ssl.ca.location": ca,
        } | (
            {"controller.sasl.mechanism": "PLAIN"}
            if scram
            else {
                "zookeeper.ssl.client.enable": "true",
                "zookeeper.ssl.ca.location": ca,
                "zookeeper.sasl.username": USER,
                "zookeeper.sasl.password": "${env:ADMIN_PASSWORD}",
            }
        )

    @property
    def zookeeper(self) -> str | None:
        """host:port of its ZooKeeper; None where it has a quorum."""
        return f"localhost:{self.metadata}" if "zookeeper" in self._processes else None

    @property
    def controllers(self) -> dict[int, str]:
        """host:port of its controller; none with ZooKeeper."""
        return {} if self.zookeeper else {1: f"localhost:{self.metadata}"}

    def launch(self, name: str, main: str, *arguments: str, jaas: str = "", options: tuple[str, ...] = ()) -> None:
        """Start a JVM."""
        if jaas:
            (self.folder / f"{name}.jaas").write_text(jaas, encoding="utf-8")
            options = (*options, f"-Djava.security.auth.login.config={self.folder / f'{name}.jaas'}")
        with (self.folder / f"{name}.out").open("ab") as out:
            self._processes[name] = subprocess.Popen(
                self._java(main, *arguments, options=options), stdout=out, stderr=out, cwd=self.folder
            )

    def _java(self, main: str, *arguments: str, options: tuple[str, ...] = ()) -> list[str]:
        logging = self.folder / "log4j.properties"
        logging.write_text(LOGGING, encoding="utf-8")
        quick = (
            "-Xmx384m",
            "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC",
            "-Dfile.encoding=UTF-8",
            f"-Dlog4j.configuration=file:{logging}",
        )
        return ["java", *quick, *options, "-cp", str(self._libraries), main, *arguments]

    def common(self) -> str:
        """Return the properties of a broker that both kinds have."""
        plain = f'{_SASL}.plain.PlainLoginModule required username="admin" password="{ADMIN_PASSWORD}"'
        users = f'user_admin="{ADMIN_PASSWORD}" user_{USER}="{_escaped(PASSWORD)}";'
        of_plain = "".join(
            f"listener.name.{listener}.plain.sasl.jaas.config={plain} {users}\n"
            for listener in ("client", "controller")
        )
        return (
            of_plain
            + f"""\
listener.name.client.scram-sha-512.sasl.jaas.config={_SASL}.scram.ScramLoginModule required;
listener.name.client.scram-sha-256.sasl.jaas.config={_SASL}.scram.ScramLoginModule required;
listener.name.client.oauthbearer.sasl.jaas.config={_SASL}.oauthbearer.OAuthBearerLoginModule required \
unsecuredLoginStringClaim_sub="admin";
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER
sasl.mechanism.inter.broker.protocol=PLAIN
inter.broker.listener.name=CLIENT
ssl.keystore.type=PEM
ssl.keystore.location={self.certificates.server}
ssl.truststore.type=PEM
ssl.truststore.location={self.certificates.ca}
listener.name.mutual.ssl.client.auth=required
log.dirs={self.folder / "data"}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=2
transaction.state.log.replication.factor=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
num.network.threads=1
num.io.threads=2
"""
        )

    def start_quorum(self) -> None:
        """Start the broker, which is the only controller of its quorum too."""
        listeners = f"CLIENT://localhost:{self.sasl},MUTUAL://localhost:{self.mutual}"
        config = self.folder / "server.properties"
        config.write_text(
            self.common()
            + f"""\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@localhost:{self.metadata}
controller.listener.names=CONTROLLER
sasl.mechanism.controller.protocol=PLAIN
listener.name.controller.sasl.enabled.mechanisms=PLAIN
listeners={listeners},CONTROLLER://localhost:{self.metadata}
advertised.listeners={listeners}
listener.security.protocol.map=CLIENT:SASL_SSL,MUTUAL:SSL,CONTROLLER:SASL_SSL
""",
            encoding="iso-8859-1",
        )
        users = [
            argument
            for digest in ("SHA-256", "SHA-512")
            for argument in ("--add-scram", f'SCRAM-{digest}=[name={USER},password="{PASSWORD}"]')
        ]
        subprocess.run(
            self._java("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(config), *users),
            check=True,
            stdout=subprocess.DEVNULL,
        )
        self.launch("broker", "kafka.Kafka", str(config))

    def start_with_zookeeper(self) -> None:
        """Start a ZooKeeper that asks for TLS and a user, and the broker."""
        keeper = self.folder / "zookeeper.properties"
        keeper.write_text(
            f"""\
dataDir={self.folder / "zookeeper"}
secureClientPort={self.metadata}
admin.enableServer=false
tickTime=500
serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory
ssl.keyStore.location={self.certificates.server}
ssl.trustStore.location={self.certificates.ca}
ssl.clientAuth=none
authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider
""",
            encoding="utf-8",
        )
        digest = "org.apache.zookeeper.server.auth.DigestLoginModule required"
        self.launch(
            "zookeeper",
            "org.apache.zookeeper.server.quorum.QuorumPeerMain",
            str(keeper),
            jaas=f'Server {{ {digest} user_{USER}="{ADMIN_PASSWORD}"; }};',
            options=("-Dzookeeper.sessionRequireClientSASLAuth=true",),
        )
        listeners = f"CLIENT://localhost:{self.sasl},MUTUAL://localhost:{self.mutual}"
        config = self.folder / "server.properties"
        config.write_text(
            self.common()
            + f"""\
broker.id=1
listeners={listeners}
listener.security.protocol.map=CLIENT:SASL_SSL,MUTUAL:SSL
zookeeper.connect=localhost:{self.metadata}
zookeeper.ssl.client.enable=true
zookeeper.clientCnxnSocket=org.apache.zookeeper.ClientCnxnSocketNetty
zookeeper.ssl.truststore.type=PEM
zookeeper.ssl.truststore.location={self.certificates.ca}
zookeeper.session.timeout.ms=6000
""",
            encoding="iso-8859-1",
        )
        own = f'Client {{ {digest} username="{USER}" password="{ADMIN_PASSWORD}"; }};'
        self.launch("broker", "kafka.Kafka", str(config), jaas=own)


def _escaped(text: str) -> str:
    return "".join(each if ord(each) < 128 else f"\\u{ord(each):04x}" for each in text)
