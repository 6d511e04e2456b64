"""A scenario that is over at once, for tests of what is around a run."""

BRIEF = """\
name: brief
description: One fault, quickly
topics: [{name: orders, partitions: 1, config: {min.insync.replicas: 2}}]
workloads: [{kind: produce-consume, parameters: {producers: 1, consumers: 1, acks: all, rate_per_s: 50}}]
faults: [{kind: kill, at_s: 0.2, duration_s: 0.5, target: "leader(orders,0)"}]
duration_s: 1
checks: [I1, I9, I10, lost-write]
"""
