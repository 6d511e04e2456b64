"""ZooKeeper in memory: a tree, servers that agree on it, sessions that end, and clients like the broker's own."""
