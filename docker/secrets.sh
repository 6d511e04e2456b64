#!/bin/sh
# Makes what docker/compose.yaml needs and must not have: a password and three keys, fresh, readable by you alone.
#   docker/secrets.sh && docker compose -f docker/compose.yaml up --build --detach
set -eu
cd "$(dirname "$0")"
[ ! -e .env ] || { echo "docker/.env exists; what runs with it would not start with other secrets" >&2; exit 1; }
umask 077
hex() { od -An -N32 -tx1 /dev/urandom | tr -d ' \n'; }
fernet_key() { head -c 32 /dev/urandom | base64 | tr '+/' '-_'; } # URL-safe base64 of 32 bytes
secrets="POSTGRES_PASSWORD=$(hex)
AIRFLOW_SECRET_KEY=$(hex)
AIRFLOW_JWT_SECRET=$(hex)
AIRFLOW_FERNET_KEY=$(fernet_key)"
printf '%s\n' "$secrets" >.env
