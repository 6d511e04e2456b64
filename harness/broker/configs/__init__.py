"""The properties of a broker and of its topics."""
