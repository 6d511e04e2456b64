"""What a scenario may say, and how YAML becomes one: every error at once, with file, line and what is allowed."""
