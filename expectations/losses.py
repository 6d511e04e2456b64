"""Whether a run may lose committed offsets: what its settings allow, and what happened to the topic that holds them."""

from expectations.tables import table_of
from harness.analysis.schemas import LEADER_EPOCHS
from harness.contracts.checks import Settings
from harness.store.folder import RunFolder
from harness.values import OFFSETS_TOPIC


def losses_allowed(folder: RunFolder, settings: Settings) -> bool:
    """Return whether the power may go, or an allowed unclean election took place in the offsets topic."""
    table = table_of(folder, LEADER_EPOCHS.name)
    if settings.power_loss or table is None:
        return settings.power_loss
    epochs = table.in_pandas(["topic", "unclean", "unclean_allowed"])
    unclean = epochs[(epochs["topic"] == OFFSETS_TOPIC) & epochs["unclean"].fillna(False).astype(bool)]
    allowed = unclean["unclean_allowed"].astype("boolean").fillna(settings.unclean_leader_election)
    return bool(allowed.any())
