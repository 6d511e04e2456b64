"""What is collected from a cluster after a run: dumps of its replicas."""
