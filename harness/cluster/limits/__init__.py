"""What one server can have less of: CPU time, memory, open files."""
