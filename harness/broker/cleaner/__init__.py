"""Compaction: which logs are cleaned, how far, and what stays (Kafka's `LogCleaner`)."""
