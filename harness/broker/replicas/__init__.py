"""Partitions and their replicas on this broker: appending, fetching, replication, ISR and high watermark."""
