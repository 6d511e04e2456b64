"""`make airflow`: one Airflow for one person on this machine."""
