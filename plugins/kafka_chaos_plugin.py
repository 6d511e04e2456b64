"""What Airflow gets from this repository besides DAGs: the *Chaos runs* pages and the links that lead to them."""

from typing import Any

from airflow.plugins_manager import AirflowPlugin

from chaos_airflow import links
from chaos_airflow.views import serve


class KafkaChaosPlugin(AirflowPlugin):
    """The only plugin; schedulers and workers load it too, so the pages themselves are made when they are asked for."""

    name = "kafka_chaos"
    fastapi_apps: list[Any] = [{"name": "Chaos runs", "url_prefix": links.MOUNT, "app": serve}]
    external_views: list[Any] = links.external_views()
