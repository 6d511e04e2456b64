"""What a plugin fulfils and what it gets, and how plugins are found by name."""
