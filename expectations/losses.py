"""Whether a run may lose committed offsets, by its settings and by the elections of the topic that holds them."""

from expectations.tables import stored_table
from harness.analysis.tables.schemas import LEADER_EPOCHS
from harness.contracts.checks import Settings
from harness.store.folder import RunFolder
from harness.values import OFFSETS_TOPIC


def losses_allowed(folder: RunFolder, settings: Settings) -> bool:
    """Return whether power losses are allowed, or an allowed unclean election took place in the offsets topic."""
    table = stored_table(folder, LEADER_EPOCHS.name)
    if settings.power_loss or table is None:
        return settings.power_loss
    epochs = table.in_pandas(["topic", "unclean", "unclean_allowed"])
    unclean = epochs[(epochs["topic"] == OFFSETS_TOPIC) & epochs["unclean"].fillna(False).astype(bool)]
    allowed = unclean["unclean_allowed"].astype("boolean").fillna(settings.unclean_leader_election)
    return bool(allowed.any())
