"""One scenario again and again, each time with another seed: how often does it hold?"""

from collections.abc import Mapping
from typing import Any

from airflow.sdk import Param, dag

from chaos_airflow.tasks.form import in_range, request_of_form, scenario_name
from chaos_airflow.tasks.form_cache import ready_form
from chaos_airflow.tasks.mapped_runs import several_runs
from chaos_airflow.tasks.request import RunRequest

MOST = 200


@dag(
    dag_id="chaos_repeat",
    dag_display_name="Chaos repeat",
    description="One scenario with many seeds, run by run, and a summary",
    schedule=None,
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=False,
    tags=["chaos"],
    doc_md="""
### One scenario, many seeds

The form is that of `chaos_experiment`, and `times`: how many runs. Every instant and target of a run is drawn from its
seed, so another seed is another schedule of the same faults. The first run has the seed of the form, or a new one, and
each next run the next number. An inconclusive run is repeated once with its seed. `summary` says how each ended, and
`verdict` fails if one did not hold, or, where bugs are planted, if one held.

`chaos_simulate` carries out many more schedules of the scenario, in virtual time.
""",
)
def chaos_repeat() -> None:
    """Carry out the runs."""
    several_runs(requests_of_repetition, title_of=lambda params: f"repeat-{scenario_name(params)}")


def requests_of_repetition(params: Mapping[str, Any]) -> list[RunRequest]:
    """Return as many runs as are asked for."""
    from chaos_airflow.tasks.suite import repetitions

    form = dict(params)
    times = in_range("times", form.pop("times"), 1, MOST)
    return repetitions(request_of_form(form), times)


repeat = chaos_repeat()
repeat.params["times"] = Param(5, type="integer", description_md=f"How many runs *(at most {MOST})*")
repeat.params.update(ready_form())  # afterwards: each task would have a copy of what the DAG has when it is made

if __name__ == "__main__":
    repeat.test()
