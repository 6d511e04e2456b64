"""One scenario, from the trigger form: press Trigger, fill in what differs, and see what held."""

from airflow.sdk import dag

from chaos_airflow.tasks.form import request_of_form
from chaos_airflow.tasks.form_cache import ready_form
from chaos_airflow.tasks.run import run_phases


@dag(
    dag_id="chaos_experiment",
    dag_display_name="Chaos experiment",
    description="Start a cluster, put it under load, inject faults, and judge which promises it kept",
    schedule=None,
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=False,
    tags=["chaos"],
    doc_md="""
### One experiment

**Trigger** opens a form. Choose a scenario, or give the path of your own; everything else may stay empty, which means:
as the scenario says. The run starts a cluster, drives load and faults, collects the evidence and removes the cluster.
Then it judges the evidence.

- **Another fault**: choose `fault.kind`, set when it starts (`fault.at_s`), how long it lasts and what it hits. It
  takes the place of the scenario's faults. Parameters of one kind are in the section with its name, as *Fault: kill*.
- **More than one fault**: `faults` is a list, each fault as in a scenario's file.
- **Everything else**: sections follow for the rest of the scenario, faults, cluster, first topic and loads. A
  description ends with the field's limits. A value out of range ends in `start`; its log names field and limit.
- **The same run again**: give the seed that the report names. The seed decides every instant and target.
- **Can it find anything?** Choose one of the `planted_bugs`: the brokers then really have it, and the run is green only
  if it is found.

| task | what it does |
|---|---|
| `start` | checks the scenario, then starts ZooKeeper and the brokers; a wrong field ends here and no task follows |
| `drive` | load, faults and heals, each fault confirmed from outside the injector |
| `collect_and_stop` | brings all evidence into the run folder and stops everything, even if an earlier task failed |
| `judge`, `expectations` | Spark (or Sail) and Great Expectations look for broken promises in the evidence |
| `report` | writes the page; fails when the run did not end as expected |

Three verdicts answer three questions: did each **fault** really happen, did the **system** keep its promises, and is
the **environment** clean again. They, the report and the Data Docs are on the page *Chaos runs*, and behind the link
on each run of this DAG.

The same from a terminal: `chaos run SCENARIO --seed N --set key=value`; the form's fields have the names of those keys.
""",
)
def chaos_experiment() -> None:
    """One run, phase by phase."""
    run_phases(request_from=request_of_form)


experiment = chaos_experiment()
experiment.params.update(ready_form())  # afterwards: each task would have a copy of what the DAG has when it is made

if __name__ == "__main__":
    experiment.test()
