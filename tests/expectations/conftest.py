"""What tests of expectations share: a context that writes nothing, and batches of tables in both engines."""

from collections.abc import Callable
from functools import cache
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

ENGINES = ("pandas", pytest.param("spark", marks=pytest.mark.jvm))


@pytest.fixture(scope="session")
def gx_context() -> Any:
    """A context in memory, without progress bars and usage statistics."""
    from expectations.lazy_modules import light_import

    with light_import():
        import great_expectations as gx
    from great_expectations.data_context.types.base import (
        DataContextConfig,
        InMemoryStoreBackendDefaults,
        ProgressBarsConfig,
    )

    config = DataContextConfig(
        store_backend_defaults=InMemoryStoreBackendDefaults(init_temp_docs_sites=False),
        analytics_enabled=False,
        progress_bars=ProgressBarsConfig(globally=False),
    )
    return gx.get_context(mode="ephemeral", project_config=config)


@pytest.fixture(scope="session")
def batch_of(request: pytest.FixtureRequest, gx_context: Any) -> Callable[..., Any]:
    """Make a batch of a user's own table: call with an engine and a pandas frame."""
    sources = gx_context.data_sources

    @cache
    def whole(engine: str) -> Any:
        source = sources.add_pandas("own in pandas") if engine == "pandas" else sources.add_spark("own in spark")
        return source.add_dataframe_asset("table").add_batch_definition_whole_dataframe("whole")

    def batch(engine: str, frame: pd.DataFrame) -> Any:
        if engine == "pandas":
            return whole(engine).get_batch({"dataframe": frame})
        spark = request.getfixturevalue("apache_spark")  # first: a source of Spark starts a session where there is none
        table = pa.Table.from_pandas(frame, preserve_index=False)
        return whole(engine).get_batch({"dataframe": spark.createDataFrame(table)})

    return batch
