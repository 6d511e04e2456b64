"""One experiment on a cluster: load, faults and evidence."""
