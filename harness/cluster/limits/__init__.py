"""Limits of one server: CPU time, memory, open files."""
