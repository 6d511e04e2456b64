"""The controller: every broker carries it, the one named in `/controller` is active."""
