"""PySpark: turns a run folder into facts, and facts into findings."""
