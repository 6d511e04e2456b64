"""Many schedules of one scenario in virtual time, simulated and judged by one Spark job."""

from datetime import timedelta
from typing import Any

from airflow.sdk import Param, dag, get_current_context, task

from chaos_airflow.tasks.form_cache import ready_form
from chaos_airflow.tasks.run import POOL
from chaos_airflow.tasks.sweep import MOST

LONGEST = timedelta(hours=6)


@dag(
    dag_id="chaos_simulate",
    dag_display_name="Chaos simulate",
    description="Simulate many schedules of a scenario, judge all, and list the command that replays each finding",
    schedule=None,
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=False,
    tags=["chaos"],
    doc_md="""
### Many schedules in virtual time

The form is that of `chaos_experiment` without `driver` and `system`, and `schedules`: how many; `shrink`: whether the
first schedule of each finding is made smaller. The same broker as in `chaos_experiment`, on a simulated disk, network
and clock: hundreds of schedules a minute, each drawn from its own seed. The page behind *Chaos run* says what was
found in which schedules, with the command that replays each; so does the task's log. The histories are in `sweeps`, in
the folder of all runs on the worker.

The task fails when a promise was broken, or when no schedule proved anything. Where bugs are planted it fails when none
was found. The same from a terminal: `chaos simulate SCENARIO --schedules N`.
""",
)
def chaos_simulate() -> None:
    """One sweep."""

    @task(execution_timeout=LONGEST, retries=0, pool=POOL)
    def sweep() -> dict[str, Any]:
        from chaos_airflow.runs import Origin
        from chaos_airflow.tasks.sweep import carry_out

        context = get_current_context()
        ti = context["ti"]
        origin = Origin(dag_id=ti.dag_id, run_id=ti.run_id, task_id=ti.task_id)
        return carry_out(context["params"], context["dag_run"].run_after, origin)

    sweep()


simulation = chaos_simulate()
simulation.params["schedules"] = Param(200, type="integer", description_md=f"How many *(at most {MOST:,})*")
simulation.params["shrink"] = Param(
    False, type="boolean", description_md="At the end, shrink the first schedule of each finding"
)  # afterwards: each task would have a copy of what the DAG has when it is made
simulation.params.update({name: param for name, param in ready_form().items() if name not in ("driver", "system")})

if __name__ == "__main__":
    simulation.test()
