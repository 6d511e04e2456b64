"""Objectives of a scenario: measured from the facts of one run, whatever engine has made them."""
