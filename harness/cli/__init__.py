"""`chaos`: one module a command, options that commands share, and what the terminal shows."""
