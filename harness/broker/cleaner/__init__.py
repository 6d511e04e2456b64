"""Compaction: which logs are cleaned, how far, and what of them stays (Kafka's `LogCleaner`)."""
