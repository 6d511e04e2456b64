"""What the harness needs of the operating system: processes, signals, files, waiting with a deadline."""
