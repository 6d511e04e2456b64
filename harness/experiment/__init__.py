"""One experiment on a cluster: load, faults, evidence, and verdicts."""
