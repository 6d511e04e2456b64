"""Everything that is too long for every change, with a page that says what came of it."""
