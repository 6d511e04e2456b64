"""A run in progress: its state, its load over time, and how long it will still take, from its folder alone."""
