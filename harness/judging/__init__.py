"""Judges a recorded run: which checks it has evidence for, what they answer, and its verdicts."""
