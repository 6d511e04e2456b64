"""What each API does: decoded request in, decoded response out."""
