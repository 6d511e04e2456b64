"""The pages of docs/ that are generated from code and data: `python -m tools.pages` writes them all."""
