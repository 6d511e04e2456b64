"""A recorded run as one value, and what its folder lacks."""
