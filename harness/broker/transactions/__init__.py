"""The transaction coordinator: the state of each transaction, its partitions and its end."""
