"""Facts: narrow, typed tables made of the lines of run folders; `harness/analysis/schemas.py` says what each holds."""
