# One ZooKeeper server: the distribution's Java and, in jars/, the server's jars out of PySpark, put there by
# `chaos images build`. Runs as any user, on a read-only root with a writable /tmp; the whole java command is given
# from outside. Data in /var/lib/zookeeper, logs in /var/log/zookeeper, configuration mounted at /etc/zookeeper.
ARG BASE_IMAGE=python:3.11-slim-bookworm

FROM ${BASE_IMAGE}
LABEL kafka-chaos.image=1
USER 0:0
ENV HOME=/tmp
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends default-jre-headless \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/*
RUN ["install", "-d", "-m", "1777", "/var/lib/zookeeper", "/var/log/zookeeper"]
COPY jars/ /opt/zookeeper/lib/
USER 65534:65534
WORKDIR /tmp
CMD ["java", "-version"]
