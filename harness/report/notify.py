"""Sends what a run or a suite came to: to a webhook, in Slack's format, or by mail. A failure to send changes nothing.

A target may hold a secret. It is never logged and never written into a run folder: messages name its host only.
"""

import json
import os
import smtplib
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from email.message import EmailMessage
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from harness.errors import ClusterError, ScenarioError
from harness.kafka.security.references import resolved
from harness.report.conclusion import Conclusion, sentence

TIMEOUT_S = 10.0
SMTP, SENDER = "CHAOS_SMTP", "CHAOS_MAIL_FROM"
"""Environment variables of the mail server, as smtp://USER:PASSWORD@HOST:PORT or smtps://…, and of the sender."""
FORMS = "https://HOST/PATH, slack+https://HOST/PATH or mailto:ADDRESS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a notification goes."""

    scheme: str
    url: str = field(repr=False)

    @property
    def name(self) -> str:
        """The target without anything secret."""
        return (
            "mail" if self.scheme == "mailto" else f"{self.scheme.partition('+')[0]} at {urlsplit(self.url).hostname}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """What a command came to."""

    subject: str
    lines: list[str]
    data: dict[str, Any]
    """For a webhook."""


def target_of(text: str) -> Target:
    """Return a target; `${env:NAME}` and `${file:PATH}` in it are replaced.

    Raises:
        ScenarioError: it has another form, or a reference cannot be resolved; the message does not show it.
    """
    try:
        url = resolved({"target": text})["target"].strip()
    except ClusterError as error:
        raise ScenarioError(f"--notify: {error}") from error
    scheme, _, rest = url.partition(":")
    with suppress(ValueError):
        if scheme == "mailto" and "@" in rest:
            if SMTP not in os.environ:
                raise ScenarioError(f"--notify mailto: the variable {SMTP} must name the mail server: smtp://HOST:PORT")
            return Target(scheme=scheme, url=rest)
        if scheme in ("http", "https", "slack+http", "slack+https"):
            plain = url.removeprefix("slack+")
            split = urlsplit(plain)
            if split.hostname and split.port != 0:  # a port that is no number raises ValueError
                return Target(scheme=scheme, url=plain)
    raise ScenarioError(f"--notify: not a target; allowed: {FORMS}")


def of_run(conclusion: Conclusion) -> Notification:
    """Return the notification of one run."""
    lines = [sentence(conclusion), f"seed {conclusion['seed']}, {conclusion['run']}"]
    return Notification(subject=f"chaos: {lines[0].partition(',')[0]}", lines=lines, data=dict(conclusion))


def of_suite(name: str, entries: Sequence[Conclusion], unexpected: Sequence[Conclusion]) -> Notification:
    """Return the notification of a suite, which names each run that did not end as expected."""
    subject = f"chaos: {name}, {len(unexpected)} of {len(entries)} runs not as expected"
    data = {"suite": name, "unexpected": len(unexpected), "entries": list(entries)}
    return Notification(subject=subject, lines=[subject, *map(sentence, unexpected)], data=data)


def send_all(targets: Sequence[Target], notification: Notification, say: Callable[[str], None]) -> None:
    """Send a notification to each target, and say in a sentence what could not be sent."""
    for target in targets:
        try:
            _mail(target, notification) if target.scheme == "mailto" else _post(target, notification)
        except (OSError, HTTPException, smtplib.SMTPException, ValueError) as error:
            say(f"no notification by {target.name}: {_without_secrets(error)}")


def _without_secrets(error: Exception) -> str:
    """Return the kind of an error, and what the operating system says; a library's message may quote an address."""
    known = error.strerror if isinstance(error, OSError) and error.strerror else ""
    return known or (str(error) if isinstance(error, _RefusedError) else type(error).__name__)


class _RefusedError(OSError):
    """A server answered with another status than 2xx."""


def _post(target: Target, notification: Notification) -> None:
    slack = target.scheme.startswith("slack")
    body = {"text": "\n".join(notification.lines)} if slack else {"text": notification.subject, **notification.data}
    url = urlsplit(target.url)
    connection = _connection(url)
    try:
        path = url.path or "/"
        headers = {"Content-Type": "application/json"}
        connection.request("POST", f"{path}?{url.query}" if url.query else path, json.dumps(body).encode(), headers)
        status = connection.getresponse().status
    finally:
        connection.close()
    if not 200 <= status < 300:
        raise _RefusedError(f"the server answered {status}")


def _connection(url: SplitResult) -> HTTPConnection:
    kind = HTTPSConnection if url.scheme == "https" else HTTPConnection
    return kind(url.hostname or "", url.port, timeout=TIMEOUT_S)


def _mail(target: Target, notification: Notification) -> None:
    server = urlsplit(os.environ[SMTP])
    message = EmailMessage()
    message["From"] = os.environ.get(SENDER, f"chaos@{socket.gethostname()}")
    message["To"], message["Subject"] = target.url, notification.subject
    message.set_content("\n".join(notification.lines) + "\n")
    kind = smtplib.SMTP_SSL if server.scheme == "smtps" else smtplib.SMTP
    with kind(server.hostname or "", server.port or 0, timeout=TIMEOUT_S) as smtp:
        if server.scheme != "smtps" and server.username:
            smtp.starttls()
        if server.username:
            smtp.login(unquote(server.username), unquote(server.password or ""))
        smtp.send_message(message)
