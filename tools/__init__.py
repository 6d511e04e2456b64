"""What do tests and long runs share that no run needs? Comparisons with real Kafka, fuzzing, kills, made histories."""
