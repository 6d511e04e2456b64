"""`python -m expectations` stores every suite as JSON again, after a change of the suites in code."""

from expectations.suites import SUITES, as_json, stored_at

if __name__ == "__main__":
    for suite in SUITES:
        stored_at(suite).parent.mkdir(exist_ok=True)
        stored_at(suite).write_text(as_json(suite), encoding="utf-8")
