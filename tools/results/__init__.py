"""Measurements, campaigns and found bugs as data in results/, and the commands that append to it."""
