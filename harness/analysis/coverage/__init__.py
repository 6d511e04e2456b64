"""What did a run try, and which transitions and errors did it bring about? Counted from its lines, without Spark."""
