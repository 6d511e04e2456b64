"""Makes a failing schedule small: fewer faults, less load, less time, and still the same finding."""
