"""Recorded runs judged again, and their changed answers."""
