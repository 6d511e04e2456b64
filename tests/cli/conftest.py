from tests.command_line import chaos
from tests.report.conftest import add_findings, folder, result

__all__ = ["add_findings", "chaos", "folder", "result"]
