"""An existing cluster: reached by addresses, disturbed and collected only by its owner's commands."""
