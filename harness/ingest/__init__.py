"""Histories that others recorded, of other clients and other brokers: their formats, and their verdicts."""
