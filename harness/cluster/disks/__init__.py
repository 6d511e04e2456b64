"""What becomes of the disk of one server: damaged, full, failing, slow, or changed behind its back."""
