"""A partition's log on disk, in Kafka's own formats: segments, leader-epoch cache, checkpoints, recovery."""
