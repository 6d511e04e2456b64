"""Whatever bytes a client may send: a broker must not crash, hang or keep memory; see `__main__`."""
