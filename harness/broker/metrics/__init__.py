"""The broker in numbers, and how Prometheus reads them."""
