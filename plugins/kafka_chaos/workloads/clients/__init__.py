"""What the client processes of the workloads do with confluent-kafka; imported only inside such a process."""
