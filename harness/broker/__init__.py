"""The system under test: a Kafka 2.5 style broker in ZooKeeper mode, asyncio and nothing else."""
