"""Faults of one server's disk: damaged, full, failing or slow."""
