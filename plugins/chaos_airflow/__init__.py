"""The only code of the harness that imports Airflow, beside `dags` and the plugin file."""
