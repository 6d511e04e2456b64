"""Requests that change topics, configurations and the cluster."""
