from tests.analysis.fact_rows import replica
from tests.analysis.transaction_rows import WHOLE, became, ended, one
from tests.checks.answers import fails, passes, table_of

TERMS = [replica(1, 100, topic="__transaction_state", leader_epochs=[[0, 0], [3, 5]]), replica(1, 100), *one()]
CASES = {
    "coordinator epochs grow": passes(*TERMS, ended(1), ended(3, coordinator_epoch=3)),
    "a coordinator keeps its epoch": passes(*TERMS, ended(1, coordinator_epoch=3), ended(3, coordinator_epoch=3)),
    "a coordinator epoch goes back": fails(
        *TERMS,
        ended(1, coordinator_epoch=3),
        ended(3, coordinator_epoch=2),
        text="has coordinator epoch 2, and the marker at offset 1 has epoch 3",
        offsets=[3],
    ),
    "a coordinator epoch goes back to one between two others": fails(
        *TERMS,
        ended(1, coordinator_epoch=1),
        ended(3, coordinator_epoch=3),
        ended(5, coordinator_epoch=2),
        text="has coordinator epoch 2, and the marker at offset 3 has epoch 3",
    ),
    "another producer has an older coordinator": passes(
        *TERMS, ended(1, coordinator_epoch=3), ended(3, producer_id=8, coordinator_epoch=1)
    ),
    "no coordinator had the epoch": fails(
        *TERMS, ended(1, coordinator_epoch=4), text="and the last coordinator had epoch 3"
    ),
    "the producer has no transactional id": passes(*TERMS, ended(1, producer_id=8, coordinator_epoch=4)),
    "the leader epochs are not known": passes(*WHOLE, became("Empty", 0), ended(1, coordinator_epoch=4)),
}
CASES |= CASES["coordinator epochs grow"].without_each("replicas")

test_which_coordinator_wrote_markers = table_of("marker-epochs", CASES)
