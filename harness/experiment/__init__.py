"""One experiment on a cluster: load, faults, evidence, and what the judges make of it."""
