"""Does a broker at rest know what it would read anew? Compares its memory with ZooKeeper, its disks and its logs."""
