"""Does a held message that is never answered prove that it was held?"""

import pytest

from harness.contracts import registry
from harness.verdict import FaultVerdict
from tests.fake_cluster import FakeCluster
from tests.faults.injecting import prepared

CONFIRMED, INCONCLUSIVE = FaultVerdict.CONFIRMED, FaultVerdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("action", "held_s", "left_after_s", "verdict"),
    [
        pytest.param("hold", 1.5, 1.5, CONFIRMED, id="its sender leaves when it is let go"),
        pytest.param("hold", 1.5, 3.0, CONFIRMED, id="its sender leaves before the answer"),
        pytest.param("hold", 1.5, None, INCONCLUSIVE, id="its sender waits on"),
        pytest.param("hold", 1.5, 0.8, INCONCLUSIVE, id="its sender has left while it was held"),
        pytest.param("hold", 0.1, 3.0, INCONCLUSIVE, id="it was held for a moment"),
        pytest.param("redeliver", 1.5, 1.5, INCONCLUSIVE, id="it was sent again later"),
    ],
)
async def test_a_message_that_is_never_answered(
    cluster: FakeCluster, action: str, held_s: float, left_after_s: float | None, verdict: FaultVerdict
) -> None:
    fault = registry.fault("intercept")
    injection = await prepared(cluster, "intercept", 1, apis=["Produce"], action=action, hold_s=held_s)
    await fault.inject(cluster.context, injection)
    ((caught,),) = cluster.intercepting.values()
    caught.answered_s, caught.let_go_s = None, caught.caught_s + held_s
    caught.left_s = None if left_after_s is None else caught.caught_s + left_after_s
    effect = await fault.confirm(cluster.context, injection)
    assert effect.verdict is verdict
