"""`chaos images`: the images of the docker driver's containers."""

import datetime
import json
import time
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.options import Json
from harness.errors import ClusterError, Interrupted

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

app = typer.Typer(name="images", help="Build, list and remove the images of the docker driver.", no_args_is_help=True)

MEGABYTE = 1_000_000
SHOWN_EVERY_S = 10.0
REQUEST_TIMEOUT_S = 300.0
"""Removing a big image from a busy disk takes a while."""


class TerminalBuild:
    """Shows a build: a line for each finished step, and the current one: live on a terminal, at times elsewhere."""

    def __init__(self, console: "Console") -> None:
        self._console = console
        self._live: Status | None = None
        self._step = ""
        self._began_s = self._shown_s = 0.0

    def started(self, step: str, doing: str) -> None:
        """Show the started step."""
        self._step = f"{step}: {doing}"
        self._began_s = self._shown_s = time.monotonic()
        if self._console.is_terminal:
            self._live = self._console.status(self._text(self._step))
            self._live.start()
        else:
            self._print(self._step)

    def line(self, text: str) -> None:
        """Show the newest line of output and the step's age; where no line can replace it, now and then."""
        now_s = time.monotonic()
        age = f"{now_s - self._began_s:.0f} s"
        if self._live is not None:
            self._live.update(self._text(f"{self._step}  {age}  {text}"))
        elif now_s - self._shown_s >= SHOWN_EVERY_S:
            self._shown_s = now_s
            self._print(f"{self._step.partition(':')[0]}: {age}: {text}")

    def finished(self, step: str, came_to: str) -> None:
        """Show how a step ended."""
        self.close()
        self._print(f"{step}: {came_to}")

    def close(self) -> None:
        """Remove the live line."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _text(self, text: str) -> str:
        from rich.markup import escape

        return escape(text[: self._console.width - 4])

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


@app.command(epilog="Example: chaos images build --base-image python:3.12-slim-bookworm")
def build(
    base_image: Annotated[
        str | None,
        typer.Option(
            metavar="IMAGE", help="Debian-like image with Python 3.11 to 3.13; else an official one, or one made here."
        ),
    ] = None,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Build everything again, including the base.")] = False,
    as_json: Json = False,
) -> None:
    """Build missing or changed images: a base, the brokers' image, ZooKeeper's and the relay's."""
    from rich.console import Console

    from harness.cluster.containers import building
    from harness.cluster.containers.engine import Engine
    from harness.system.interruption import Interrupts

    progress = TerminalBuild(Console(stderr=as_json))
    try:
        with Interrupts(), Engine.connect(timeout_s=REQUEST_TIMEOUT_S) as engine:
            built = building.build(engine, progress, base_image=base_image, rebuild=rebuild)
    except KeyboardInterrupt:
        raise Interrupted("interrupted; what was half built is removed") from None
    finally:
        progress.close()
    if as_json:
        images = [{"part": one.part, "image": one.name, "base": one.base, "rebuilt": one.rebuilt} for one in built]
        typer.echo(json.dumps(images, indent=2))


@app.command("list", epilog="Example: chaos images list --json")
def list_(as_json: Json = False) -> None:
    """List the harness's images on the engine, and which of them this checkout uses."""
    from harness.cluster.containers import images
    from harness.cluster.containers.engine import Engine
    from harness.cluster.containers.image_store import ImageStore

    with Engine.connect(timeout_s=REQUEST_TIMEOUT_S) as engine:
        ours = ImageStore(engine).ours()
        lacking = images.missing(engine)
    used = {image.name for image in images.needed()}
    used |= {image.base for image in ours if image.name in used}
    if as_json:
        rows = [
            {
                "image": image.name,
                "id": image.id,
                "base": image.base,
                "size_bytes": image.size_bytes,
                "created": datetime.datetime.fromtimestamp(image.created_s, datetime.UTC).isoformat(),
                "in_use": image.name in used,
            }
            for image in ours
        ]
        typer.echo(json.dumps({"images": rows, "missing": lacking}, indent=2))
        return
    for image in ours:
        state = "current" if image.name in used else "old"
        base = f"  on {image.base}" if image.base else ""
        typer.echo(f"{image.name or image.id}  {image.size_bytes // MEGABYTE} MB  {state}{base}")
    for name in lacking:
        typer.echo(f"{name}  missing; make it with: chaos images build")


@app.command(epilog="Example: chaos images remove")
def remove() -> None:
    """Remove all images of the harness; pulled images stay."""
    from harness.cluster.containers.engine import Engine
    from harness.cluster.containers.image_store import ImageStore

    refusals = []
    with Engine.connect(timeout_s=REQUEST_TIMEOUT_S) as engine:
        store = ImageStore(engine)
        for image in sorted(store.ours(), key=lambda image: not image.base):  # a base after the images on it
            try:
                store.remove(image)
            except ClusterError as error:
                refusals.append(str(error))
            else:
                typer.echo(f"removed {image.name or image.id}")
    if refusals:
        raise ClusterError("\n".join(refusals))
