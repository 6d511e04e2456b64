"""The broker's metrics, and their export to Prometheus."""
