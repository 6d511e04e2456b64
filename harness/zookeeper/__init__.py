"""How the harness itself sees ZooKeeper: the history observer, the current view, and the power to end a session.

The only home of kazoo outside the broker.
"""
