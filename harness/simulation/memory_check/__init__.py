"""Compares the memory of brokers at rest with what they would load after a restart."""
