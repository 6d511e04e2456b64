"""The output of a run for people: one HTML page that opens offline, and JUnit XML for machines.

Reads the run folder only: the result, the facts and the findings as Parquet (without Spark), and the scenario.
"""
