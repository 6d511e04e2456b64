"""How does `make airflow` start one Airflow for one person on this machine?"""
