"""What is under test, apart from where it runs: our broker in Python, and Apache Kafka by release."""
