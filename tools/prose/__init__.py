"""The lint of prose: spelling, and words that a reader stumbles over."""
