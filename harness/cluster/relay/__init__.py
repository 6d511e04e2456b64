"""One process that all traffic of a run passes through when its links are to be disturbed."""

SOCKET_NAME = "relay.sock"
PROCESS = "relay"
CLIENTS = "clients"
"""All clients as one host; whatever comes to the address that they are told counts as one."""
SOMEBODY = "somebody"
"""Who is not known to be a host of the cluster; nobody disturbs its links."""
