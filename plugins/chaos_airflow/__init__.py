"""Runs and shows experiments in Airflow. Only this package, `dags` and the plugin file import Airflow."""
