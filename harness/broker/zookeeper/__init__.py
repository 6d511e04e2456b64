"""The broker's ZooKeeper: the protocol that the rest of the broker sees, and kazoo behind it."""
