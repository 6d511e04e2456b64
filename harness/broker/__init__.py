"""The built-in broker: Kafka 2.5 with ZooKeeper, on one asyncio loop."""
