"""Runs the mutants of checks: `python -m tests.mutation [MODULE …] [--every N]`; without modules, those of all.

Writes a line a survivor, and a score. Survivors that `equivalent.yaml` knows, with the reason, count as killed; any
other makes the command fail.
"""

import argparse
import logging
import sys
import time
from pathlib import Path

from ruamel.yaml import YAML

from harness.analysis.engine.session import spark_session, tuned
from tests.mutation.run import Judge, modules

EQUIVALENT = Path(__file__).parent / "equivalent.yaml"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("modules", nargs="*", help="last names of modules: of checks, or of what they share")
    parser.add_argument("--every", type=int, default=1, help="put every so many-th mutant to the tests only")
    arguments = parser.parse_args()
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):  # mutants break, as they may
        logging.getLogger(name).setLevel(logging.CRITICAL)
    known = modules()
    unknown = sorted(set(arguments.modules) - set(known))
    if unknown:
        parser.error(f"no such module: {', '.join(unknown)}; known: {', '.join(known)}")
    reasons: dict[str, dict[str, str]] = YAML(typ="safe").load(EQUIVALENT) or {}
    tried, excused, alive = 0, 0, 0
    began = time.process_time()
    with spark_session(lasting=True, anywhere=True) as spark, tuned(spark, 0):
        judge = Judge(spark)
        passed_by = 0
        for name in arguments.modules or known:
            module = known[name]
            every = module.mutants()
            of_module = every[-passed_by % arguments.every :: arguments.every]
            passed_by += len(every)
            if not of_module:
                continue
            for check in module.checks:
                if not judge.passes(check):
                    parser.error(f"the tests of {check} fail without any mutant")
            equivalent, new = 0, 0
            for mutant in of_module:
                if not judge.survives(module, mutant):
                    continue
                if mutant.change in reasons.get(name, {}):
                    equivalent += 1
                else:
                    new += 1
                    print(f"  {module.path.name}:{mutant.line}: {mutant.change}", flush=True)
            tried, excused, alive = tried + len(of_module), excused + equivalent, alive + new
            print(f"{name}: {len(of_module)} mutants, {equivalent} equivalent, {new} alive", flush=True)
    killed = tried - excused - alive
    print(
        f"{killed} of {tried} killed, {excused} equivalent, {alive} alive; {time.process_time() - began:.0f} s of CPU"
    )
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
