"""How is a listener reached over TCP, with the TLS and SASL that it asks for, and what does it ask for if that fails?

What is opened here carries frames of any of the harness's clients. A failure is a sentence about the listener, without
any setting's value.
"""

import asyncio
import ssl
from contextlib import suppress

from harness.errors import ClusterError
from harness.kafka.apis import SASL_AUTHENTICATE, SASL_HANDSHAKE
from harness.kafka.client import Connection, NoAnswer, Stream
from harness.kafka.codec import Values
from harness.kafka.security.sasl import exchange
from harness.kafka.security.settings import Security, described

MAX_RESPONSE_BYTES = 100 << 20
SECURE_TIMEOUT_S = 10.0
"""For all exchanges of TLS and SASL."""
CLIENT_ID = "chaos-probe"
PLAINTEXT = Security()
_READ_AHEAD_BYTES = 1024 * 1024
_TLS_ALERT = b"\x15\x03"
"""How a TLS listener's answer to what is not TLS begins."""
_UNSUPPORTED_MECHANISM, _ILLEGAL_STATE = 33, 34
_TRIED_MECHANISM = "NONE"
"""Which no listener has: it answers with those that it has."""
_WANTS_CERTIFICATE = ("CERTIFICATE_REQUIRED", "BAD_CERTIFICATE", "HANDSHAKE_FAILURE")

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def opened(host: str, port: int, security: Security = PLAINTEXT) -> Ends:
    """Connect to a listener and prove what it asks for; the two ends carry frames then.

    Raises:
        OSError: it cannot be reached, or does not accept; the message is a sentence.
    """
    try:
        context = security.tls.context() if security.tls else None
        reader, writer = await asyncio.open_connection(host, port, limit=_READ_AHEAD_BYTES, ssl=context)
    except ssl.SSLError as error:
        raise OSError(_of_tls(error)) from None
    except ClusterError as error:
        raise OSError(str(error)) from None
    if security is PLAINTEXT or security.protocol == "PLAINTEXT":
        return reader, writer
    connection = Connection(TcpStream(reader, writer), f"{host}:{port}", CLIENT_ID)
    try:
        if security.mechanism:
            await _authenticated(connection, security)
        else:
            await connection.negotiate(timeout_s=SECURE_TIMEOUT_S)  # with TLS 1.3 a refusal comes with the first answer
    except (NoAnswer, ClusterError) as error:
        connection.close()
        raise OSError(str(error)) from None
    except BaseException:
        connection.close()
        raise
    return reader, writer


async def _authenticated(connection: Connection, security: Security) -> None:
    """Carry out the exchange of the client's mechanism (KIP-43, KIP-152)."""
    wanted = {"mechanism": security.mechanism}
    answer = await connection.request(SASL_HANDSHAKE, wanted, 1, timeout_s=SECURE_TIMEOUT_S)
    if answer["error_code"]:
        offered = [each["mechanism"] for each in answer["mechanisms"] or ()]
        raise ClusterError(f"it has the SASL mechanisms {', '.join(offered) or 'none'}, not {security.mechanism}")
    steps = exchange(security)
    message = await asyncio.to_thread(next, steps)  # OAUTHBEARER fetches its token first
    while True:
        authenticate = {"auth_bytes": message}
        answer = await connection.request(SASL_AUTHENTICATE, authenticate, 1, timeout_s=SECURE_TIMEOUT_S)
        if answer["error_code"]:
            raise ClusterError(f"it refuses the credentials by {security.mechanism}")
        try:
            message = steps.send(answer["auth_bytes"] or b"")
        except StopIteration:
            return


async def wanted(host: str, port: int, timeout_s: float) -> str:
    """Return what a listener asks of its clients, such as `SASL_SSL with PLAIN`; empty when that cannot be seen.

    It is asked without any credentials: by TLS first, and for a mechanism that no listener has.
    """
    unverified = ssl.create_default_context()
    unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
    for secured, context in (("SSL", unverified), ("PLAINTEXT", None)):
        try:
            async with asyncio.timeout(timeout_s):
                answer = await _offered(host, port, context)
        except NoAnswer as error:
            if "client certificate" in str(error):
                return "SSL with a client certificate"
            continue
        except (OSError, TimeoutError):
            continue
        if answer["error_code"] == _UNSUPPORTED_MECHANISM:
            return described(f"SASL_{secured}", sorted(each["mechanism"] for each in answer["mechanisms"] or ()))
        if answer["error_code"] == _ILLEGAL_STATE:
            return secured
    return ""


async def _offered(host: str, port: int, context: ssl.SSLContext | None) -> Values:
    connection = Connection(TcpStream(*await asyncio.open_connection(host, port, ssl=context)), "it", CLIENT_ID)
    try:
        request = {"mechanism": _TRIED_MECHANISM}
        return await connection.request(SASL_HANDSHAKE, request, 1, timeout_s=SECURE_TIMEOUT_S)
    finally:
        connection.close()


async def explained(host: str, port: int, security: Security, problem: str, timeout_s: float) -> str:
    """Return why a listener did not serve: what it asks for, if the settings say something else; else the problem."""
    wants = ""
    with suppress(OSError):
        wants = await wanted(host, port, timeout_s)
    protocol, _, mechanisms = wants.partition(" with ")
    if wants and (security.protocol != protocol or (security.mechanism and security.mechanism not in mechanisms)):
        return f"the listener {host}:{port} requires {wants}, and the client settings say {security.described}"
    return problem


def _of_tls(error: ssl.SSLError) -> str:
    """Return a TLS error as a sentence."""
    if isinstance(error, ssl.SSLCertVerificationError):
        settings = "ssl.truststore.location, ssl.ca.location and ssl.endpoint.identification.algorithm decide"
        return f"its certificate is not accepted ({error.verify_message}); {settings}"
    if any(reason in str(error.reason) for reason in _WANTS_CERTIFICATE):
        return "it requires a client certificate that it trusts: ssl.keystore.location, or ssl.certificate.location"
    return f"TLS failed: {error.reason or error}"


class Tcp:
    """Opens streams over TCP."""

    def __init__(self, security: Security = PLAINTEXT) -> None:
        self._security = security

    async def connect(self, host: str, port: int, *, timeout_s: float) -> Stream:
        """Connect to a broker; raises NoAnswer."""
        try:
            async with asyncio.timeout(timeout_s):
                return TcpStream(*await opened(host, port, self._security))
        except TimeoutError:
            raise NoAnswer(f"connecting to {host}:{port}: not within {timeout_s:g} s") from None
        except OSError as error:
            raise NoAnswer(f"connecting to {host}:{port}: {error}") from error


class TcpStream:
    """Implements Stream."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @property
    def closed(self) -> bool:
        """Whether either side has closed it, as far as is known here."""
        return self._writer.is_closing() or self._reader.at_eof()

    async def exchange(self, frame: bytes) -> bytes:
        """Send a frame and return the one that answers it; raises NoAnswer."""
        try:
            self._writer.write(len(frame).to_bytes(4) + frame)
            await self._writer.drain()
            head = await self._reader.readexactly(4)
            if head.startswith(_TLS_ALERT):
                raise NoAnswer("it answers in TLS, and security.protocol says that it does not")
            size = int.from_bytes(head, signed=True)
            if not 0 < size <= MAX_RESPONSE_BYTES:
                raise NoAnswer(f"a response frame of {size} bytes")
            return await self._reader.readexactly(size)
        except asyncio.IncompleteReadError:
            raise NoAnswer("closed before the response") from None
        except ssl.SSLError as error:
            raise NoAnswer(_of_tls(error)) from error
        except OSError as error:
            raise NoAnswer(str(error)) from error

    def close(self) -> None:
        """Drop the connection at once."""
        self._writer.transport.abort()
