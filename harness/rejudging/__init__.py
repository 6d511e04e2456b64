"""Recorded runs judged again, and what is different now."""
