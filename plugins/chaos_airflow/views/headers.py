"""What every response tells the browser: what it must not do, and whether it has the same already."""

import hashlib

from starlette import status
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; frame-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'self'"
)
"""For the plugin's own pages: nothing inline, nothing from elsewhere, framed by Airflow alone."""
REPORT_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; font-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
)
"""For a report, whose timeline is an inline script and a library beside it.

It runs without an origin, so with neither cookies nor any API.
"""
DOCS_POLICY = (
    "default-src 'none'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; form-action 'none'; "
    "base-uri 'none'; frame-ancestors 'self'"
)
"""For Data Docs and the page of all nights, which need no script and get none."""

EVERYWHERE = {
    "Content-Security-Policy": PAGE_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "private, no-cache",
}


class SecurityHeaders:
    """Adds to every response what it does not say itself, refusals and errors included."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in EVERYWHERE.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_guarded)


class Revalidated:
    """Adds an ETag to each answer, and sends no body to a client that has the current one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        start: Message = {}

        async def send_what_is_new(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
                return
            body = message.get("body", b"")
            if start.get("status") == status.HTTP_200_OK and not message.get("more_body"):
                tag = f'W/"{hashlib.sha256(body).hexdigest()[:32]}"'  # weak: compression happens further out
                headers = MutableHeaders(scope=start)
                headers["ETag"] = tag
                if Headers(scope=scope).get("If-None-Match") == tag:
                    start["status"], message = status.HTTP_304_NOT_MODIFIED, {"type": message["type"], "body": b""}
                    del headers["Content-Length"]
            if start:
                await send(dict(start))
                start.clear()  # of an answer in several parts, which has no tag
            await send(message)

        await self._app(scope, receive, send_what_is_new)
