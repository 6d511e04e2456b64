"""Cluster drivers: what starts, stops, disturbs and inspects a cluster, behind one protocol."""
