"""What clients, brokers and ZooKeeper wrote, as typed tables or as lines: sealed, read, and put into one shape."""
