"""Mutants of the broker, swept in virtual time: which mistakes does the harness reach, and which does it find?"""
