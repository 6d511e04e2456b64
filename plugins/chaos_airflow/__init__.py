"""How does Airflow run and show experiments? Only this package, `dags` and the plugin file import Airflow."""
