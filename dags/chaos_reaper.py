"""Every quarter of an hour: removes what dead runs left behind, and closes abandoned runs with a verdict."""

from datetime import timedelta

from airflow.sdk import dag, task


@dag(
    dag_id="chaos_reaper",
    dag_display_name="Chaos reaper",
    description="Remove processes, containers and folders that dead runs left",
    schedule=timedelta(minutes=15),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=False,
    tags=["chaos", "maintenance"],
    doc_md="""
### What dead runs leave behind

A worker that was killed, a machine that ran out of memory, a teardown that was killed too: then processes, containers,
networks, volumes or half-made run folders may be left. This DAG removes them, by pid file and label only, and of runs
in the configured runs folder only. If no task continues a run for 15 minutes after its load, this DAG collects its
evidence, stops it and closes it with a verdict, which is never PASS.

- **Live runs are never touched**: a cluster is alive as long as its supervisor is. A cluster whose load never
  starts ends at its own time limit.
- **It runs where the clusters run**: pids mean nothing elsewhere. With several workers, give this task the queue of the
  worker that carries out the other chaos DAGs. It needs no slot of their pool, so a long run does not hold it up.
- The task log names every thing and what became of it. The task fails when something could not be removed.

The same from a terminal: `chaos reap`, or `chaos reap --dry-run` to see what it would do.
""",
)
def chaos_reaper() -> None:
    """One round."""

    @task(execution_timeout=timedelta(minutes=30), retries=0)
    def reap() -> dict[str, int]:
        from chaos_airflow.tasks.reaping import reap_runs

        return reap_runs()

    reap()


reaper = chaos_reaper()

if __name__ == "__main__":
    reaper.test()
