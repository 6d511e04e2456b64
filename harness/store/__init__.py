"""A run's folder and what lies in it: evidence, phases, the plan of the run and its verdict."""
