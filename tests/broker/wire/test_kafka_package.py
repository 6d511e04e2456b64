import subprocess
import sys

import pytest


def run(code: str) -> str:
    """Return what a fresh interpreter prints."""
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def test_the_messages_load_without_the_client() -> None:
    loaded = "'kafka.protocol.api_message' in sys.modules, 'kafka.admin' in sys.modules"
    assert run(f"import sys, harness.broker.wire.messages; print({loaded})") == "True False"


@pytest.mark.parametrize(
    "use",
    [
        pytest.param("from kafka import KafkaProducer as found", id="a name is imported"),
        pytest.param("import kafka; found = kafka.KafkaProducer", id="an attribute is read"),
        pytest.param("from kafka.producer import KafkaProducer as found", id="a module of its own is imported"),
    ],
)
def test_the_client_is_there_for_who_asks(use: str) -> None:
    code = f"import harness.broker.wire.messages; {use}; print(found.__name__)"
    assert run(code) == "KafkaProducer"


def test_the_real_package_stays_when_it_is_loaded_already() -> None:
    before = "import kafka; real = kafka.KafkaProducer"
    assert run(f"{before}; import harness.broker.wire.messages; print(real is kafka.KafkaProducer)") == "True"


def test_a_name_that_nobody_has_is_refused() -> None:
    code = (
        "import harness.broker.wire.messages, kafka; print(hasattr(kafka, 'Nonsense'), hasattr(kafka, '__nonsense__'))"
    )
    assert run(code) == "False False"
