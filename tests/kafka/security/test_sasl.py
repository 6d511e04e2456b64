"""What a client answers to a SASL mechanism, by the example of RFC 7677, and when it does not believe the other end."""

import pytest

from harness.errors import ClusterError
from harness.kafka.security import sasl
from harness.kafka.security.settings import Security

NONCE = "rOprNGfwEbeRWgbNEkqO"
CHALLENGE = f"r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
PROOF = "p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
SIGNATURE = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
USER = Security(protocol="SASL_SSL", mechanism="SCRAM-SHA-256", username="user", password="pencil")


def begun(monkeypatch: pytest.MonkeyPatch) -> sasl.Exchange:
    monkeypatch.setattr("secrets.token_urlsafe", lambda _size: NONCE)
    steps = sasl.exchange(USER)
    assert next(steps) == f"n,,n=user,r={NONCE}".encode()
    return steps


def test_the_proof_of_a_password_is_that_of_the_rfc(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = begun(monkeypatch)
    assert steps.send(CHALLENGE.encode()).decode().rpartition(",")[2] == PROOF
    with pytest.raises(StopIteration):
        steps.send(SIGNATURE.encode())


@pytest.mark.parametrize(
    ("challenge", "final", "message"),
    [
        pytest.param(CHALLENGE, "v=AAAA", "has not proved that it knows the password", id="another signature"),
        pytest.param(CHALLENGE.replace("rO", "xx"), "", "another challenge than RFC 5802 has", id="another nonce"),
        pytest.param("e=unknown-user", "", "another challenge than RFC 5802 has", id="an error"),
    ],
)
def test_a_listener_that_does_not_know_the_password_is_not_believed(
    monkeypatch: pytest.MonkeyPatch, challenge: str, final: str, message: str
) -> None:
    steps = begun(monkeypatch)

    def exchanged() -> None:
        for answer in (challenge, final):
            steps.send(answer.encode())

    with pytest.raises(ClusterError, match=message):
        exchanged()


def test_other_mechanisms_say_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert next(sasl.exchange(Security(mechanism="PLAIN", username="a", password="b"))) == b"\0a\0b"
    bearer = sasl.exchange(Security(mechanism="OAUTHBEARER", username="me"))
    assert next(bearer).startswith(b"n,,\x01auth=Bearer eyJhbGciOiAibm9uZSJ9.")
    assert bearer.send(b'{"status":"invalid_token"}') == b"\x01", "the refusal has to be acknowledged"
    nowhere = Security(mechanism="OAUTHBEARER", oauth={"token.endpoint.url": "http://127.0.0.1:1/token"})
    with pytest.raises(ClusterError, match=r"the token endpoint http://127.0.0.1:1/token gives no token"):
        next(sasl.exchange(nowhere))
