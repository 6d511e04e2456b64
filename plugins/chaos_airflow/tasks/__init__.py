"""What do the tasks of the DAGs do? One run, phase by phase; a suite; a round of the reaper."""
