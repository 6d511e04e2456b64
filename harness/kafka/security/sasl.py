"""What does a client answer to SASL challenges? PLAIN, SCRAM (RFC 5802, as KIP-84 has it) and OAUTHBEARER."""

import base64
import hashlib
import hmac
import json
import secrets
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Generator

from harness.errors import ClusterError
from harness.kafka.security.settings import Security

Exchange = Generator[bytes, bytes, None]
"""Yields each message of the client and is sent what the broker answers to it."""
_NO_BINDING = b"n,,"
TOKEN_TIMEOUT_S = 10.0


def exchange(security: Security) -> Exchange:
    """Return the exchange of a client's mechanism; it raises ClusterError where the broker proves nothing."""
    if security.mechanism == "PLAIN":
        return _plain(security)
    if security.mechanism == "OAUTHBEARER":
        return _bearer(security)
    return _scram(security, security.mechanism.removeprefix("SCRAM-").replace("-", "").lower())


def _plain(security: Security) -> Exchange:
    yield f"\0{security.username}\0{security.password}".encode()


def _scram(security: Security, digest: str) -> Exchange:
    own_nonce = secrets.token_urlsafe(24)
    user = security.username.replace("=", "=3D").replace(",", "=2C")
    first = f"n={user},r={own_nonce}"
    challenge = (yield _NO_BINDING + first.encode()).decode()
    fields = dict(part.split("=", 1) for part in challenge.split(",") if "=" in part)
    if not fields.get("r", "").startswith(own_nonce) or "s" not in fields or not fields.get("i", "").isdecimal():
        raise ClusterError("the listener answers SCRAM's first message with another challenge than RFC 5802 has")
    salt, rounds = base64.b64decode(fields["s"]), int(fields["i"])
    salted = hashlib.pbkdf2_hmac(digest, security.password.encode(), salt, rounds)
    without_proof = f"c={base64.b64encode(_NO_BINDING).decode()},r={fields['r']}"
    signed = f"{first},{challenge},{without_proof}".encode()
    client_key = hmac.digest(salted, b"Client Key", digest)
    signature = hmac.digest(hashlib.new(digest, client_key).digest(), signed, digest)
    proof = bytes(own ^ other for own, other in zip(client_key, signature, strict=True))
    final = (yield f"{without_proof},p={base64.b64encode(proof).decode()}".encode()).decode()
    expected = hmac.digest(hmac.digest(salted, b"Server Key", digest), signed, digest)
    if final.split(",")[0] != f"v={base64.b64encode(expected).decode()}":
        raise ClusterError("the listener has not proved that it knows the password")


def _bearer(security: Security) -> Exchange:
    refused = yield f"n,,\x01auth=Bearer {_token(security)}\x01\x01".encode()
    if refused:  # a message of the mechanism's own, which an empty one ends
        yield b"\x01"


def _token(security: Security) -> str:
    if "token.endpoint.url" in security.oauth:
        return _fetched(security.oauth)
    now_s = int(time.time())
    claims = {"sub": security.username, "iat": now_s, "exp": now_s + 3600}
    return ".".join((_base64({"alg": "none"}), _base64(claims), ""))


def _base64(value: dict[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def _fetched(oauth: dict[str, str]) -> str:
    """Return the token that an endpoint gives for client credentials (RFC 6749, section 4.4)."""
    url, form = oauth["token.endpoint.url"], {"grant_type": "client_credentials"}
    if "scope" in oauth:
        form["scope"] = oauth["scope"]
    credentials = base64.b64encode(f"{oauth.get('client.id', '')}:{oauth.get('client.secret', '')}".encode()).decode()
    headers = {"Authorization": f"Basic {credentials}", "Accept": "application/json"}
    request = urllib.request.Request(url, urllib.parse.urlencode(form).encode(), headers)  # noqa: S310  the user's own
    try:
        with urllib.request.urlopen(request, timeout=TOKEN_TIMEOUT_S) as answer:  # noqa: S310
            return str(json.load(answer)["access_token"])
    except (OSError, ValueError, KeyError) as error:
        why = f"status {error.code}" if isinstance(error, urllib.error.HTTPError) else type(error).__name__
        raise ClusterError(f"the token endpoint {url} gives no token: {why}") from None
