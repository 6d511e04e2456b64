"""Which certificates and keys are in the stores of client settings? All become PEM, which all libraries read."""

from collections.abc import Mapping
from pathlib import Path

from harness.errors import ClusterError

_BEGIN, _KEY = b"-----BEGIN ", "PRIVATE KEY-----"
_JKS = b"\xfe\xed\xfe\xed"


def trusted(settings: Mapping[str, str], prefix: str = "ssl.") -> str:
    """Return the certificates of the authorities that are trusted, as PEM; empty for those of the system.

    Raises:
        ClusterError: a store cannot be read.
    """
    if pem := settings.get(f"{prefix}truststore.certificates"):
        return pem
    for name in ("truststore.location", "ca.location"):
        if path := settings.get(prefix + name):
            certificates, _ = _read(prefix + name, path, settings.get(f"{prefix}truststore.password"))
            return certificates
    return ""


def identity(settings: Mapping[str, str], prefix: str = "ssl.") -> tuple[str, str]:
    """Return the client's chain of certificates and its private key, as PEM; empty when it has none.

    A key that was encrypted in a PEM file still is; one from a PKCS12 store is not.

    Raises:
        ClusterError: a store cannot be read, or one of the two is missing.
    """
    if path := settings.get(f"{prefix}keystore.location"):
        password = settings.get(f"{prefix}keystore.password")
        chain, key = _read(f"{prefix}keystore.location", path, password)
    else:
        chain = settings.get(f"{prefix}keystore.certificate.chain", "")
        key = settings.get(f"{prefix}keystore.key", "")
        if path := settings.get(f"{prefix}certificate.location"):
            chain = _read(f"{prefix}certificate.location", path, None)[0]
        if path := settings.get(f"{prefix}key.location"):
            key = _read(f"{prefix}key.location", path, None)[1]
    if bool(chain) != bool(key):
        raise ClusterError(f"the client settings have a {'certificate without its key' if chain else 'key alone'}")
    return chain, key


def _read(name: str, path: str, password: str | None) -> tuple[str, str]:
    """Return the certificates of a file and its private key."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ClusterError(f"{name}: {path} cannot be read: {error.strerror}") from None
    if _BEGIN in data:
        return _parts(data.decode(errors="replace"))
    if data.startswith(_JKS):
        convert = f"keytool -importkeystore -srckeystore {path} -destkeystore {path}.p12 -deststoretype PKCS12"
        raise ClusterError(f"{name}: {path} is a store of the type JKS, which only Java reads; convert it: {convert}")
    return _of_pkcs12(name, path, data, password)


def _parts(text: str) -> tuple[str, str]:
    """Return the blocks of a PEM file that are certificates, and the one that is a key."""
    certificates, key = [], ""
    block: list[str] = []
    for line in text.splitlines():
        if line.startswith("-----BEGIN "):
            block = []
        block.append(line)
        if line.startswith("-----END "):
            whole = "\n".join(block) + "\n"
            if line.endswith(_KEY):
                key = whole
            elif "CERTIFICATE" in line:
                certificates.append(whole)
    return "".join(certificates), key


def _of_pkcs12(name: str, path: str, data: bytes, password: str | None) -> tuple[str, str]:
    try:
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12
    except ModuleNotFoundError:
        raise ClusterError(f"{name}: a PKCS12 store needs the package cryptography; or give PEM files") from None
    try:
        store = pkcs12.load_pkcs12(data, None if password is None else password.encode())
    except ValueError:
        raise ClusterError(
            f"{name}: {path} is not PEM, and not a PKCS12 store that {name.rpartition('.')[0]}.password opens"
        ) from None
    certificates = [each for each in (store.cert, *store.additional_certs) if each is not None]
    chain = "".join(each.certificate.public_bytes(Encoding.PEM).decode() for each in certificates)
    if store.key is None:
        return chain, ""
    return chain, store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
