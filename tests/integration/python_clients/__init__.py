"""Transactional clients in Python, each a program with the commands of go_clients/franz.

python -m tests.integration.python_clients.NAME SERVERS session|fence|late TOPIC TRANSACTIONAL-ID
python -m tests.integration.python_clients.NAME SERVERS copy FROM TO GROUP TRANSACTIONAL-ID    until its input ends
"""
