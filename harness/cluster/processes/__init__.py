"""Brokers and ZooKeeper as child processes of a supervisor, on loopback."""
