"""Histories that others recorded, of other clients and other brokers: what their lines hold, and what they come to."""
