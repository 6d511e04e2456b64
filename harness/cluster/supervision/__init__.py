"""The parent of all processes of one cluster, and how others have it run, disturb and end them."""
