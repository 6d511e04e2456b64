import pytest

from harness.broker.controller.transitions import PARTITION_PREVIOUS, REPLICA_PREVIOUS, PartitionStatus, ReplicaStatus

P = PartitionStatus
R = ReplicaStatus


@pytest.mark.parametrize("previous", list(P))
@pytest.mark.parametrize(
    ("target", "legal"),
    [
        pytest.param(P.NEW, {P.NON_EXISTENT}, id="new"),
        pytest.param(P.ONLINE, {P.NEW, P.ONLINE, P.OFFLINE}, id="online"),
        pytest.param(P.OFFLINE, {P.NEW, P.ONLINE, P.OFFLINE}, id="offline"),
        pytest.param(P.NON_EXISTENT, {P.OFFLINE}, id="gone"),
    ],
)
def test_partitions(target: P, legal: set[P], previous: P) -> None:
    assert (previous in PARTITION_PREVIOUS[target]) == (previous in legal)


@pytest.mark.parametrize("previous", list(R))
@pytest.mark.parametrize(
    ("target", "legal"),
    [
        pytest.param(R.NEW, {R.NON_EXISTENT}, id="new"),
        pytest.param(R.ONLINE, {R.NEW, R.ONLINE, R.OFFLINE, R.DELETION_INELIGIBLE}, id="online"),
        pytest.param(R.OFFLINE, {R.NEW, R.ONLINE, R.OFFLINE, R.DELETION_INELIGIBLE}, id="offline"),
        pytest.param(R.DELETION_STARTED, {R.OFFLINE}, id="deletion started"),
        pytest.param(R.DELETION_SUCCESSFUL, {R.DELETION_STARTED}, id="deleted"),
        pytest.param(R.DELETION_INELIGIBLE, {R.OFFLINE, R.DELETION_STARTED}, id="cannot be deleted"),
        pytest.param(R.NON_EXISTENT, {R.DELETION_SUCCESSFUL}, id="gone"),
    ],
)
def test_replicas(target: R, legal: set[R], previous: R) -> None:
    assert (previous in REPLICA_PREVIOUS[target]) == (previous in legal)
