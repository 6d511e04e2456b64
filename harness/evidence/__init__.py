"""Dumps of a cluster's replicas after a run, read from Kafka's files on disk."""
