"""Typed tables of evidence in perfect order, made by Arrow's readers when it is sealed, and judged where they are."""
