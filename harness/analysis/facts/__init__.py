"""What happened in a run? Each function makes one fact, a table of `schemas`: its columns and its rows are there."""
