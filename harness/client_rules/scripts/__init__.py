"""Scripts of client calls: how one is played to a broker, and which of its answers are compared with recorded ones."""
