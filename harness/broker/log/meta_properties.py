"""`meta.properties` (Kafka's `BrokerMetadataCheckpoint`): whose data directory this is, so that no other opens it."""

from harness.broker.log.storage import Storage, StorageError

META_PROPERTIES = "meta.properties"
_VERSION = "0"


def claim_data_directory(storage: Storage, *, broker_id: int, cluster_id: str) -> None:
    """Write the directory's owner, or return if it is recorded already.

    Raises:
        StorageError: it belongs to another broker or another cluster, or cannot be read.
    """
    wanted = {"version": _VERSION, "broker.id": str(broker_id), "cluster.id": cluster_id}
    if not storage.exists(META_PROPERTIES):
        storage.replace(META_PROPERTIES, "".join(f"{name}={value}\n" for name, value in wanted.items()).encode())
        return
    owner = _parse(storage.read(META_PROPERTIES))
    wrong = [
        f"{name}={owner.get(name)}, expected {value}" for name, value in wanted.items() if owner.get(name) != value
    ]
    if wrong:
        raise StorageError(f"the data directory is not this broker's: {META_PROPERTIES} says {'; '.join(wrong)}")


def _parse(data: bytes) -> dict[str, str]:
    lines = (line.strip() for line in data.decode(errors="replace").splitlines())
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return {name.strip(): value.strip() for name, _, value in pairs}
