from tests.command_line import chaos

__all__ = ["chaos"]
