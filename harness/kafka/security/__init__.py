"""How do clients of the harness prove themselves to a secured cluster? Kafka's settings, TLS and SASL, in one place."""
