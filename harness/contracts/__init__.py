"""The contracts of plugins, and how plugins are found by name."""
