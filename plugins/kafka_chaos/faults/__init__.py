"""Fault plugins, one kind a file."""
