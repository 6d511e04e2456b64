"""The harness's own access to ZooKeeper: the history observer, the current view, and the end of sessions.

The only home of kazoo outside the broker.
"""

import logging

# Without a handler Python would print kazoo's warnings, one for each try to connect; where there are handlers, as in
# Airflow, they are logged.
logging.getLogger("kazoo").addHandler(logging.NullHandler())
