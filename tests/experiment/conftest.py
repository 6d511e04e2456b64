from tests.virtual_time import only_virtual_time, pytest_asyncio_loop_factories

__all__ = ["only_virtual_time", "pytest_asyncio_loop_factories"]
