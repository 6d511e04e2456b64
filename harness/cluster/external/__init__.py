"""A cluster that somebody else started: reached by addresses, disturbed and collected by its owner's commands only."""
