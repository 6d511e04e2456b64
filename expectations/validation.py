"""Lets one checkpoint judge many tables, by validation definitions with a frame each."""

from typing import TYPE_CHECKING, Any

import pandas as pd
from great_expectations.compatibility import pydantic
from great_expectations.core import ExpectationSuiteValidationResult, ValidationDefinition
from typing_extensions import override

if TYPE_CHECKING:
    from great_expectations.data_context.data_context.ephemeral_data_context import EphemeralDataContext
    from pyspark.sql import DataFrame

    from expectations.suites import Suite


class TableValidation(ValidationDefinition):
    """One suite and the frame that it judges; a checkpoint would pass one frame to all of its validations."""

    _frame: Any = pydantic.PrivateAttr(default=None)

    @classmethod
    def of(
        cls, context: "EphemeralDataContext", suite: "Suite", frame: "pd.DataFrame | DataFrame"
    ) -> "TableValidation":
        """Return it, known to the context."""
        sources = context.data_sources
        source = sources.add_pandas(suite.name) if isinstance(frame, pd.DataFrame) else sources.add_spark(suite.name)
        batch = source.add_dataframe_asset(suite.table).add_batch_definition_whole_dataframe("whole")
        validation = cls(name=suite.name, data=batch, suite=context.suites.add(suite.build()))
        validation._frame = frame
        context.validation_definitions.add(validation)
        return validation

    @override
    def run(self, **options: Any) -> ExpectationSuiteValidationResult:
        """Judge the frame, not the one passed by the checkpoint."""
        return super().run(**{**options, "batch_parameters": {"dataframe": self._frame}})
