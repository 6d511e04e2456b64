# Airflow and this harness in one image, from the locked requirements; the context is the repository:
#   docker build -f docker/airflow.Dockerfile -t kafka-chaos-airflow .
# The base is a Debian-like image with Python 3.11 to 3.13 and pip; Java is for Spark and the embedded ZooKeeper.
ARG BASE_IMAGE=python:3.11-slim-bookworm

FROM ${BASE_IMAGE}
USER 0:0
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends default-jre-headless procps \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/*
ENV PIP_BREAK_SYSTEM_PACKAGES=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /opt/kafka-chaos
COPY requirements.txt docker/requirements-postgres.txt ./
RUN ["python3", "-m", "pip", "install", "--require-hashes", "-r", "requirements.txt", "-r", "requirements-postgres.txt"]
COPY LICENSE README.md pyproject.toml ./
COPY harness harness
COPY expectations expectations
COPY plugins plugins
COPY dags dags
RUN ["python3", "-m", "pip", "install", "--no-build-isolation", "--no-deps", "--editable", "."]
RUN ["useradd", "--uid", "50000", "--gid", "0", "--home-dir", "/opt/airflow", "--no-create-home", "airflow"]
RUN ["install", "-d", "-o", "50000", "-g", "0", "-m", "0770", "/opt/airflow", "/opt/airflow/logs", "/opt/airflow/auth", "/runs"]
ENV AIRFLOW_HOME=/opt/airflow HOME=/opt/airflow PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    AIRFLOW__CORE__DAGS_FOLDER=/opt/kafka-chaos/dags AIRFLOW__CORE__PLUGINS_FOLDER=/opt/kafka-chaos/plugins \
    AIRFLOW__CORE__LOAD_EXAMPLES=false AIRFLOW__KAFKA_CHAOS__RUNS=/runs \
    AIRFLOW__USAGE_DATA_COLLECTION__ENABLED=false
USER 50000:0
ENTRYPOINT ["python3", "-m", "airflow"]
