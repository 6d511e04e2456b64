"""The same broker under virtual time: loop, network, disk, ZooKeeper and clients in memory, all driven by one seed."""
