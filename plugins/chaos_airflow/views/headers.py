"""What every response tells the browser not to do."""

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; frame-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'self'"
)
"""For the plugin's own pages: nothing inline, nothing from elsewhere, framed by Airflow alone."""
REPORT_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; font-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
)
"""For a report, whose charts are inline script: it runs without an origin, so with neither cookies nor any API."""
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
