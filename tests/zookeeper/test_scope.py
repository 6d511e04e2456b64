"""Which znodes of a cluster that others use too are evidence."""

import pytest

from harness.zookeeper.scope import Scope

OWN = "chaos-0123456789-"


@pytest.mark.parametrize(
    ("path", "holds", "leads_to"),
    [
        pytest.param("/config", False, True, id="above what is evidence"),
        pytest.param("/config/topics", True, True, id="all topics' configuration"),
        pytest.param("/config/users", False, False, id="users"),
        pytest.param("/config/users/bob", False, False, id="a user"),
        pytest.param("/delegation_token/tokens", False, False, id="tokens"),
        pytest.param("/controller_epoch", True, True, id="a controller's epoch"),
        pytest.param("/controllers", False, False, id="a name that begins alike"),
        pytest.param("/brokers/ids/1", True, True, id="a broker"),
        pytest.param(f"/brokers/topics/{OWN}orders/partitions/0/state", True, True, id="a partition of the run's"),
        pytest.param("/brokers/topics/orders/partitions/0/state", False, False, id="a partition of another user"),
        pytest.param("/brokers/topics/__consumer_offsets", True, True, id="the topic that has the run's offsets too"),
        pytest.param("/config/topics/orders", False, False, id="a topic's configuration of another user"),
        pytest.param("/admin/delete_topics/orders", False, False, id="a deletion of another user"),
        pytest.param(f"/admin/delete_topics/{OWN}orders", True, True, id="a deletion of the run's"),
        pytest.param("/admin/reassign_partitions", False, False, id="topics that are asked for, whosever"),
        pytest.param("/isr_change_notification/isr_change_1", False, False, id="topics whose ISR changed, whosever"),
    ],
)
def test_of_a_cluster_of_others_only_brokers_and_own_topics_are_evidence(
    path: str, holds: bool, leads_to: bool
) -> None:
    assert (Scope(OWN).holds(path), Scope(OWN).leads_to(path)) == (holds, leads_to)
    assert Scope().holds(path)
    assert Scope().leads_to(path)
