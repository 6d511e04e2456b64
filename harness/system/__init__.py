"""What the harness needs of the operating system: processes, signals, scratch folders, waiting with a deadline."""
