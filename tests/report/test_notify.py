"""Notifications: which targets there are, what each receives, and that no secret is shown when one fails."""

import json
import smtplib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import pytest

from harness.errors import ScenarioError
from harness.report import notify
from harness.report.conclusion import Conclusion
from harness.report.notify import of_run, of_suite, send_all, target_of

SECRET = "T0K3N"
CONCLUSION = Conclusion(
    run="runs/r", scenario="smoke", driver="process", seed=7, outcome="missed", fault="CONFIRMED", system="PASS",
    environment="CLEAN", objectives="MISSED", reason="objective no_write_s: 9 s (at most 8 s)",
)  # fmt: skip
SENTENCE = "smoke missed, CONFIRMED / PASS / CLEAN / MISSED: objective no_write_s: 9 s (at most 8 s)"


@dataclass
class Server:
    """A webhook that keeps what it receives."""

    port: int
    status: int = 200
    received: list[tuple[str, Any]] = field(default_factory=list)


@pytest.fixture
def server() -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            known.received.append((self.path, json.loads(body)))
            self.send_response(known.status)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        known = Server(port=listening.server_port)
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield known
        listening.shutdown()
        thread.join()


def test_a_webhook_receives_the_conclusion_and_slack_a_text(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK", f"127.0.0.1:{server.port}/{SECRET}?a=1")
    targets = [target_of("http://${env:HOOK}"), target_of("slack+http://${env:HOOK}")]
    said: list[str] = []
    send_all(targets, of_run(CONCLUSION), said.append)
    (path, webhook), (_, slack) = server.received
    assert (said, path) == ([], f"/{SECRET}?a=1")
    assert webhook == {"text": "chaos: smoke missed", **CONCLUSION}
    assert slack == {"text": f"{SENTENCE}\nseed 7, runs/r"}


def test_what_is_not_delivered_is_said_without_the_secret(server: Server) -> None:
    server.status = 403
    refused = f"http://user:{SECRET}@127.0.0.1:{server.port}/{SECRET}"
    gone = f"slack+http://127.0.0.1:1/{SECRET}"
    said: list[str] = []
    send_all([target_of(refused), target_of(gone)], of_run(CONCLUSION), said.append)
    assert said == [
        "no notification by http at 127.0.0.1: the server answered 403",
        "no notification by slack at 127.0.0.1: Connection refused",
    ]
    assert SECRET not in repr(target_of(refused))


class Smtp:
    """A mail server's client that keeps what it does."""

    done: list[Any] = []

    def __init__(self, host: str, port: int, **_: Any) -> None:
        self.done.append((host, port))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.done.append("closed")

    def starttls(self) -> None:
        self.done.append("tls")

    def login(self, user: str, password: str) -> None:
        self.done.append((user, password))

    def send_message(self, message: EmailMessage) -> None:
        self.done.append((message["From"], message["To"], message["Subject"], message.get_content()))


def test_mail_is_encrypted_before_the_password_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Smtp, "done", [])
    monkeypatch.setattr(smtplib, "SMTP", Smtp)
    monkeypatch.setenv(notify.SMTP, f"smtp://me:{SECRET}%21@mail.example.org:587")
    monkeypatch.setenv(notify.SENDER, "chaos@example.org")
    send_all([target_of("mailto:ops@example.org")], of_run(CONCLUSION), print)
    text = f"{SENTENCE}\nseed 7, runs/r\n"
    mail = ("chaos@example.org", "ops@example.org", "chaos: smoke missed", text)
    assert Smtp.done == [("mail.example.org", 587), "tls", ("me", f"{SECRET}!"), mail, "closed"]


def test_a_suite_names_what_was_not_expected() -> None:
    notification = of_suite("gate", [CONCLUSION, CONCLUSION], [CONCLUSION])
    assert notification.lines == ["chaos: gate, 1 of 2 runs not as expected", SENTENCE]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(f"ftp://host/{SECRET}", "not a target; allowed: https://HOST/PATH", id="another scheme"),
        pytest.param(f"https:///{SECRET}", "not a target", id="no host"),
        pytest.param(f"https://host:{SECRET}/", "not a target", id="no port"),
        pytest.param("mailto:nowhere", "not a target", id="no address"),
        pytest.param("${env:GONE}", "GONE", id="a variable that is not set"),
        pytest.param("mailto:ops@example.org", "CHAOS_SMTP must name the mail server", id="no mail server"),
    ],
)
def test_what_is_no_target_is_refused_before_the_run(text: str, message: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        target_of(text)
    assert message in str(refused.value)
    assert SECRET not in str(refused.value)
