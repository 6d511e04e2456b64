"""How the harness itself sees a cluster without ZooKeeper: the metadata log of its controllers, live and afterwards.

The log is translated to changes of the znodes that Kafka had for the same things, so that one history, one view and
the same facts stand for both kinds of cluster (decision 0081).
"""
