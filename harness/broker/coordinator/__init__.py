"""The group coordinator: where committed offsets are kept."""
