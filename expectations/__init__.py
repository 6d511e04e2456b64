"""Great Expectations: suites over the facts, custom expectations with the field names of Kafka, and their runner."""
