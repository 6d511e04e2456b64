"""Numbers in requests and responses that stand for none, or for something special, by Kafka's names."""

NO_EPOCH = -1
"""Leader epoch: unknown to the sender, or not to be checked (`NO_PARTITION_LEADER_EPOCH`)."""
EPOCH_DURING_DELETE = -2
"""Leader epoch in StopReplica: the topic is deleted, in any epoch (KIP-570)."""
UNKNOWN_BROKER_EPOCH = -1
"""Broker epoch: of no registration, and so not checked (KIP-380)."""
LATEST = -1
"""As timestamp in ListOffsets: the end of the log, or of what is committed."""
EARLIEST = -2
"""As timestamp in ListOffsets: the start of the log."""
MAX_TIMESTAMP = -3
"""As timestamp in ListOffsets, from v7 on: the record with the largest timestamp (KIP-734)."""
EARLIEST_LOCAL = -4
"""As timestamp in ListOffsets, from v8 on: the start of what is on this disk (KIP-405)."""
LATEST_TIERED = -5
"""As timestamp in ListOffsets, from v9 on: the end of what is in tiered storage (KIP-1005)."""
NO_TIMESTAMP = -1
"""As timestamp in a response."""
CONSUMER = -1
"""As replica in Fetch and ListOffsets: no replica, but a client that reads."""
NO_GENERATION = -1
"""Generation of a client outside the group, as in a simple commit of offsets."""
