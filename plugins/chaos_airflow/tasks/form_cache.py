"""The trigger form as it was made ahead: making it takes half a second of processor time, and DAGs are parsed all day.

`make pages` writes it anew. It counts for the content that it was made of; where other faults,
loads, scenarios or checks are installed, the form is made of those when a DAG is parsed.
"""

import hashlib
import json
from pathlib import Path

from airflow.sdk import Param

from chaos_airflow.tasks.form import form
from harness.cluster.systems.system import families
from harness.contracts import registry
from harness.contracts.registry import Kind

FILE = Path(__file__).with_name("form.json")


def ready_form() -> dict[str, Param]:
    """Return the parameters of the DAG by name, in the order of the form."""
    ready = json.loads(FILE.read_bytes())
    if ready["content"] != content():
        return form()
    return {name: Param(value, **schema) for name, (value, schema) in ready["fields"].items()}


def content() -> str:
    """Return a digest of what the form is made of: what faults, loads and scenarios say, and the other names."""
    named = [*registry.names(Kind.CHECK), *registry.names(Kind.DRIVER), *families()]
    digest = hashlib.sha256("\n".join(named).encode())
    for kind in (Kind.FAULT, Kind.WORKLOAD, Kind.SCENARIO):
        for entry in registry.plugins(kind):
            digest.update(f"\n{kind}/{entry.name}\n".encode())
            digest.update(entry.path.read_bytes())
    return digest.hexdigest()


def write() -> None:
    """Write the form as the content makes it now, a line a field."""
    fields = [f"{json.dumps(name)}: {json.dumps([param.value, param.schema])}" for name, param in form().items()]
    lines = [f'{{"content": "{content()}", "fields": {{', ",\n".join(fields), "}}", ""]
    FILE.write_text("\n".join(lines), encoding="utf-8")
