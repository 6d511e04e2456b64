# One broker. `chaos images build` puts the context together: requirements.txt, the wheels it names, and harness/ with
# what the broker imports. Nothing is downloaded here. Runs as any user, on a read-only root with a writable /tmp;
# data in /var/lib/kafka, logs in /var/log/kafka, configuration mounted at /etc/kafka/broker.properties.
# One stage: the wheels weigh 1 MB, and the installed packages stay in the cache when only the broker's code changes.
ARG BASE_IMAGE=python:3.11-slim-bookworm

FROM ${BASE_IMAGE}
LABEL kafka-chaos.image=1
USER 0:0
ENV PYTHONPATH=/opt/kafka-chaos PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HOME=/tmp
RUN ["install", "-d", "-m", "1777", "/var/lib/kafka", "/var/log/kafka"]
COPY requirements.txt wheels/ /opt/wheels/
RUN ["python3", "-m", "pip", "install", "--no-cache-dir", "--disable-pip-version-check", "--root-user-action=ignore", \
     "--no-index", "--find-links=/opt/wheels", "--require-hashes", "--target=/opt/kafka-chaos", \
     "-r", "/opt/wheels/requirements.txt"]
COPY harness /opt/kafka-chaos/harness
RUN ["python3", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", "/opt/kafka-chaos/harness"]
USER 65534:65534
WORKDIR /tmp
ENTRYPOINT ["python3", "-m", "harness.broker"]
