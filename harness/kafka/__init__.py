"""A small client of Kafka's protocol for probes. It shares no code with the broker: a mistake of its codec shows."""
