"""The controller: every broker has one; that of the broker named in `/controller` is active."""
