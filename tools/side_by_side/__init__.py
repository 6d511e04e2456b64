"""The same disturbances on this project's brokers and on real Kafka 3.9, judged by what each writes into ZooKeeper."""
