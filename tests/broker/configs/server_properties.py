"""Properties files of Kafka 3.9 in ZooKeeper mode: that of the release, and one as in production."""

from pathlib import Path

from harness.properties_file import properties_in

ORDINARY_FILE = Path(__file__).with_name("server.properties")
ORDINARY = properties_in(ORDINARY_FILE.read_text())
PRODUCTION = {
    "broker.id": "3",
    "broker.rack": "eu-1a",
    "listeners": "INTERNAL://0.0.0.0:9092,EXTERNAL://0.0.0.0:9094",
    "advertised.listeners": "INTERNAL://broker-3:9092,EXTERNAL://kafka-3.example.com:9094",
    "listener.security.protocol.map": "INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT",
    "inter.broker.listener.name": "INTERNAL",
    "num.network.threads": "8",
    "num.io.threads": "16",
    "num.replica.fetchers": "4",
    "background.threads": "10",
    "queued.max.requests": "1000",
    "socket.send.buffer.bytes": "-1",
    "socket.receive.buffer.bytes": "-1",
    "log.dirs": "/data/1,/data/2",
    "num.partitions": "6",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "unclean.leader.election.enable": "false",
    "auto.create.topics.enable": "false",
    "delete.topic.enable": "true",
    "message.max.bytes": "10485880",
    "replica.fetch.max.bytes": "10485880",
    "log.retention.ms": "259200000",
    "log.segment.bytes": "536870912",
    "log.message.timestamp.type": "LogAppendTime",
    "log.message.format.version": "3.0",
    "inter.broker.protocol.version": "2.5",
    "offsets.retention.minutes": "20160",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "zookeeper.connect": "zk-1:2181,zk-2:2181,zk-3:2181/kafka",
    "zookeeper.session.timeout.ms": "18000",
    "controlled.shutdown.enable": "true",
    "metric.reporters": "",
    "security.inter.broker.protocol": "PLAINTEXT",
}
UNUSABLE = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:admin",
    "inter.broker.protocol.version": "3.9",
    "log.preallocate": "true",
    "metric.reporters": "io.example.Reporter",
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    "ssl.keystore.location": "/etc/kafka/keystore.jks",
    "listener.name.external.ssl.keystore.location": "/etc/kafka/keystore.jks",
    "zookeeper.set.acl": "true",
}
"""Lines that a broker here cannot honour."""
