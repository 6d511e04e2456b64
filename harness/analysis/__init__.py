"""Turns a run folder into facts, and facts into findings, on Spark or Sail."""
