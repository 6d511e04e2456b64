"""Check plugins, one promise a file."""
