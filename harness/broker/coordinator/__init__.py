"""The group coordinator, which keeps committed offsets."""
