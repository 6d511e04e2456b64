"""`chaos kafka`: Apache Kafka as the system under test."""

from typing import Annotated

import typer

app = typer.Typer(name="kafka", help="Fetch releases of Apache Kafka, to test them.", no_args_is_help=True)


@app.command("get", epilog="Example: chaos kafka get 3.9.1")
def get(version: Annotated[str, typer.Argument(metavar="VERSION", help="A release, e.g. 3.9.1.")]) -> None:
    """Fetch the jars of a release with Maven, once; CHAOS_KAFKA names the folder that holds the releases."""
    from rich.console import Console
    from rich.markup import escape

    from harness.cluster.systems.kafka.jars import fetch
    from harness.cluster.systems.kafka.releases import release_of

    release = release_of(version)
    console = Console()
    with console.status(f"Maven fetches Apache Kafka {version}") as status:
        folder = fetch(release, lambda line: status.update(escape(line[: console.width - 4])))
    console.print(f"Apache Kafka {version} is in {folder}", highlight=False, soft_wrap=True)
