"""Workload plugins, one kind a file."""
