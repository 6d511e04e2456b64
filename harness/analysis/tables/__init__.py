"""The contract between facts, checks, suites and report: which fact tables there are, and what their columns mean."""
