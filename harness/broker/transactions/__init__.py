"""The transaction coordinator: who is in which transaction, and how each one ends."""
