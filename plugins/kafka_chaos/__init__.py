"""Everything that is content: faults, workloads, checks, scenarios, and the Airflow wiring."""
