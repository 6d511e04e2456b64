"""`make nightly` as a DAG: every step that is too long for CI a task of its own, and a page that sums them up."""

from datetime import timedelta
from typing import Any

from airflow.sdk import Param, dag, get_current_context, task

from chaos_airflow.tasks.run import POOL

SHORT = timedelta(minutes=5)
LONGEST = timedelta(hours=6, minutes=15)
"""A step ends itself after six hours."""


@dag(
    dag_id="chaos_long_tests",
    dag_display_name="Chaos long tests",
    description="Mutation, sweeps, a soak and other tests that are too long for CI, with a summary page",
    schedule=None,
    catchup=False,
    max_active_runs=1,
    tags=["chaos", "tests"],
    params={
        "scale": Param(1.0, type="number", exclusiveMinimum=0, maximum=1, description="1 is a whole night"),
        "seed": Param(None, type=["null", "integer"], minimum=0, description="By default the day"),
    },
    doc_md="""
### What is too long for CI

The steps of `make nightly`, mapped over one task, one after the other in the pool `chaos`. A step's log ends with its
last lines and its whole log lies in the folder that it names, in `artifacts/long-tests` of the checkout. `page` runs
however the steps ended: it writes `index.html` there, and fails if any step failed or was not run.

- **By hand**: a night holds the one slot of the pool for hours, so `chaos_nightly` would wait. Where nothing else
  needs the machine, give it a schedule.
- **It needs a checkout with its tests** and what `requirements-dev.txt` names; `steps` fails where they are missing.
- Bugs that Kafka has published are a step for each release; one that was not fetched is not run, and the page says so.
- A small `scale` tries every other step small.
""",
)
def chaos_long_tests() -> None:
    """Map the steps over one task, and sum them up."""

    @task(execution_timeout=SHORT, retries=0)
    def steps() -> list[str]:
        from chaos_airflow.tasks.long_tests import step_names

        return step_names(get_current_context())

    @task(
        execution_timeout=LONGEST,
        retries=0,
        pool=POOL,
        max_active_tis_per_dagrun=1,
        map_index_template="{{ task.op_kwargs['name'] }}",
    )
    def step(name: str) -> None:
        from chaos_airflow.tasks.long_tests import carry_out

        carry_out(get_current_context(), "--step", name)

    @task(execution_timeout=SHORT, retries=0)
    def page() -> None:
        from chaos_airflow.tasks.long_tests import carry_out

        carry_out(get_current_context(), "--page")

    # A teardown of no setup: a DAG run that is marked by hand has its page too.
    carried_out: Any = step.expand(name=steps())
    carried_out >> page().as_teardown(on_failure_fail_dagrun=True)


long_tests = chaos_long_tests()

if __name__ == "__main__":
    long_tests.test()
