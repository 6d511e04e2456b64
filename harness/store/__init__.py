"""A run's folder and its content: evidence, phases, the plan of the run and its verdict."""
