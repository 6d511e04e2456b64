"""What may a scenario declare, how is it read from YAML, and which plan does a seed make of it?"""
