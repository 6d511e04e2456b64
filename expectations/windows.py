"""The base of expectations that judge each row of a table by the rows beside it, in Spark windows.

A subclass names its columns as parameters, so that it works on any table, and its sentence, which Data Docs shows.
"""

from collections.abc import Mapping
from string import Template
from typing import Any, ClassVar, Literal

from great_expectations.compatibility import pydantic
from great_expectations.compatibility.typing_extensions import override
from great_expectations.core import ExpectationValidationResult
from great_expectations.expectations.expectation import MulticolumnMapExpectation, render_suite_parameter_string
from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
from great_expectations.expectations.metrics.map_metric_provider.multicolumn_map_metric_provider import (
    MulticolumnMapMetricProvider,
)
from great_expectations.render.components import LegacyRendererType, RenderedStringTemplateContent
from great_expectations.render.renderer.renderer import renderer
from great_expectations.render.renderer_configuration import RendererConfiguration, RendererValueType


class WindowMetric(MulticolumnMapMetricProvider):
    """One yes or no a row, from the row and its window; a row with a null in a named column is left out."""

    condition_domain_keys = (
        "batch_id",
        "table",
        "column_list",
        "row_condition",
        "condition_parser",
        "ignore_row_if",
    )


class WindowExpectation(MulticolumnMapExpectation):
    """An expectation whose columns are parameters with names; `column_list` follows from them."""

    key_columns: list[str] = pydantic.Field(description="Columns that tell one sequence of rows from another")
    column_list: list[str] = pydantic.Field(default=[], description="All named columns; follows from the others")
    ignore_row_if: Literal["all_values_are_missing", "any_value_is_missing", "never"] = "any_value_is_missing"

    column_parameters: ClassVar[tuple[str, ...]] = ()
    """Names of the parameters that each name one column, beside `key_columns`."""
    sentence: ClassVar[str] = ""
    """What Data Docs says, with `$parameter` where a parameter stands."""

    @pydantic.root_validator(pre=True)
    @classmethod
    def _list_columns(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Fill `column_list`, the domain of the metric."""
        defaults = {name: field.default for name, field in cls.__fields__.items()}
        given = {**defaults, **values}
        single = [given.get(name) for name in cls.column_parameters]
        return {**values, "column_list": [*(given.get("key_columns") or []), *(name for name in single if name)]}

    @classmethod
    def _said(cls, kwargs: Mapping[str, Any]) -> dict[str, str]:
        """Return the parameters as they stand in the sentence; one that is left out has its default."""
        values = {name: kwargs.get(name, cls.__fields__[name].default) for name in cls.column_parameters}
        keys = kwargs.get("key_columns") or cls.__fields__["key_columns"].default or []
        return {**{name: str(value) for name, value in values.items()}, "key": ", ".join(keys)}

    @classmethod
    @override
    def _prescriptive_template(cls, renderer_configuration: RendererConfiguration[Any]) -> RendererConfiguration[Any]:
        for name, value in cls._said(renderer_configuration.kwargs).items():
            renderer_configuration.add_param(name=name, param_type=RendererValueType.STRING, value=value)
        renderer_configuration.template_str = cls.sentence
        return renderer_configuration

    @classmethod
    @renderer(renderer_type=LegacyRendererType.PRESCRIPTIVE)
    @render_suite_parameter_string
    @override
    def _prescriptive_renderer(
        cls,
        configuration: ExpectationConfiguration | None = None,
        result: ExpectationValidationResult | None = None,
        runtime_configuration: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> list[RenderedStringTemplateContent]:
        return [
            RenderedStringTemplateContent(
                content_block_type="string_template",
                string_template={
                    "template": cls.sentence,
                    "params": cls._said(configuration.kwargs if configuration else {}),
                    "styling": (runtime_configuration or {}).get("styling"),
                },
            )
        ]

    @classmethod
    def told(cls, kwargs: Mapping[str, Any]) -> str:
        """Return the sentence with its parameters filled in."""
        return Template(cls.sentence).safe_substitute(cls._said(kwargs))
