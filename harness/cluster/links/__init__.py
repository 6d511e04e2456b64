"""Which host reaches which, and how fast: between real servers by a relay, and in virtual time."""
