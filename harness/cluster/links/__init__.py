"""Who reaches whom, and how fast: between real servers by a relay, and in virtual time."""
