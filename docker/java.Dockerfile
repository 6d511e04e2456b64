# One server on Java: ZooKeeper, whose jars out of PySpark `chaos images build` puts into jars/, or a broker of Apache
# Kafka, whose jars are mounted. The Java is the distribution's. Runs as any user, on a read-only root with a writable
# /tmp; the whole command is given from outside. Data in /var/lib/zookeeper or /var/lib/kafka, logs below /var/log,
# configuration mounted below /etc. A name that is not known yet may be the next moment: no answer is kept.
ARG BASE_IMAGE=python:3.11-slim-bookworm

FROM ${BASE_IMAGE}
LABEL kafka-chaos.image=1
USER 0:0
ENV HOME=/tmp
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends default-jre-headless \
    && sed -i 's/^networkaddress.cache.negative.ttl=.*/networkaddress.cache.negative.ttl=0/' \
        /etc/java-*-openjdk/security/java.security \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/*
RUN ["install", "-d", "-m", "1777", "/var/lib/zookeeper", "/var/log/zookeeper", "/var/lib/kafka", "/var/log/kafka"]
COPY jars/ /opt/zookeeper/lib/
USER 65534:65534
WORKDIR /tmp
CMD ["java", "-version"]
