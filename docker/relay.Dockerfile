# The relay that all traffic of a run passes through where its links are disturbed. `chaos images build` puts the context
# together: harness/ with what the relay imports, which is the standard library beside. Runs as any user, on a read-only
# root; its folder, with what it is told and its sockets, is mounted at /var/lib/relay.
ARG BASE_IMAGE=python:3.11-slim-bookworm

FROM ${BASE_IMAGE}
LABEL kafka-chaos.image=1
USER 0:0
ENV PYTHONPATH=/opt/kafka-chaos PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HOME=/tmp
COPY harness /opt/kafka-chaos/harness
RUN ["python3", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", "/opt/kafka-chaos/harness"]
USER 65534:65534
WORKDIR /tmp
ENTRYPOINT ["python3", "-m", "harness.cluster.relay"]
