"""For CI: one short scenario without any Airflow service, `python dags/chaos_smoke.py` or `dag.test(run_conf=…)`."""

from datetime import timedelta

if __name__ == "__main__":  # before anything of Airflow is imported: it looks for its home at once
    from chaos_airflow.ci import main

    main("chaos_smoke", "smoke")

from airflow.sdk import Param, dag

from chaos_airflow.tasks.run import run_phases


@dag(
    dag_id="chaos_smoke",
    description="Kill a leader, expire the controller's session, shut a broker down; check that nothing was lost",
    schedule=None,
    catchup=False,
    max_active_runs=1,
    tags=["chaos", "ci"],
    params={
        "scenario": Param("smoke", type="string", description="A built-in scenario, or the path of a YAML file"),
        "driver": Param(None, type=["null", "string"], description="Cluster driver, instead of the scenario's"),
        "seed": Param(None, type=["null", "integer"], minimum=0, description="Decides all draws"),
        "planted_bugs": Param(
            [], type="array", items={"type": "string"}, description="Guards of the built-in broker to switch off"
        ),
        "set": Param([], type="array", items={"type": "string"}, description="Values to override, each key=value"),
    },
)
def chaos_smoke() -> None:
    """One run, phase by phase."""
    run_phases(drive_timeout=timedelta(minutes=15))


smoke = chaos_smoke()
