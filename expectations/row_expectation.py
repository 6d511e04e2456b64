"""Base of expectations that judge each row of a table, by itself or by its neighbours.

A subclass names its columns as parameters, so that it works on any table; its condition, in operations that Spark
and pandas share; and its sentence, which Data Docs shows.
"""

import json
from abc import abstractmethod
from collections.abc import Mapping
from string import Template
from typing import Any, ClassVar

from great_expectations.compatibility import pydantic
from great_expectations.core import ExpectationValidationResult
from great_expectations.core.result_format import ResultFormat
from great_expectations.exceptions.exceptions import InvalidExpectationConfigurationError
from great_expectations.execution_engine.execution_engine import ExecutionEngine
from great_expectations.expectations.expectation import BatchExpectation, render_suite_parameter_string
from great_expectations.expectations.expectation_configuration import ExpectationConfiguration, parse_result_format
from great_expectations.render.components import LegacyRendererType, RenderedStringTemplateContent
from great_expectations.render.renderer.renderer import renderer
from great_expectations.render.renderer_configuration import RendererConfiguration, RendererValueType
from great_expectations.validator.metric_configuration import MetricConfiguration
from great_expectations.validator.validator import ValidationDependencies
from typing_extensions import override

from expectations.metrics import COUNTS, FIRST_BROKEN
from expectations.rows import Only, Rows, Values

_EVERY_ROW = "table"
Examples = list[dict[str, Any]]
"""Tables, and whether they meet an expectation, in the form of Great Expectations' own diagnostics."""


def examples_of(
    parameters: Mapping[str, Any], *, holds: Mapping[str, list[Any]], breaks: Mapping[str, list[Any]]
) -> Examples:
    """Return a table that meets an expectation with these parameters, and one that does not."""
    return [
        {
            "data": dict(data),
            "tests": [
                {
                    "title": title,
                    "exact_match_out": False,
                    "include_in_gallery": True,
                    "in": dict(parameters),
                    "out": {"success": success},
                }
            ],
        }
        for title, data, success in (("holds", holds, True), ("breaks", breaks, False))
    ]


class RowExpectation(BatchExpectation):
    """An expectation whose columns are parameters; a row with a null in one of them is not judged."""

    key_columns: list[str] = pydantic.Field(description="Keys of one sequence of rows")
    only: Only = pydantic.Field(default={}, description="Which rows are judged: by column, the value that it holds")
    mostly: float = pydantic.Field(default=1, ge=0, le=1, description="Which share of the judged rows must meet it")

    column_parameters: ClassVar[tuple[str, ...]] = ()
    """Names of the parameters that each name one column, beside `key_columns`: those that end in `_column`."""
    nullable_parameters: ClassVar[tuple[str, ...]] = ()
    """Names of the parameters that name a column which may hold nulls, or none."""
    sentence: ClassVar[str] = ""
    """The text in Data Docs; `$parameter` stands for a parameter and `$key` for the key columns."""
    library_metadata: ClassVar[dict[str, Any]] = {
        "maturity": "beta",
        "tags": ["kafka"],
        "contributors": [],
        "has_full_test_suite": True,
    }
    success_keys: ClassVar[tuple[str, ...]] = ("key_columns", "only", "mostly")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = [name for name in cls.__fields__ if name not in BatchExpectation.__fields__]
        cls.success_keys = tuple(own)
        columns = [name for name in own if name.endswith("_column") and name not in cls.nullable_parameters]
        cls.column_parameters = tuple(columns)
        cls.args_keys = ("key_columns", *(name for name in columns if not cls.__fields__[name].allow_none))
        # Great Expectations' checklist wants one in each class itself, with an assertion in its source.
        cls.validate_configuration = cls._check_parameters  # type: ignore[method-assign, assignment]

    @abstractmethod
    def holds(self, rows: Rows) -> Values:
        """Return whether each judged row is as expected; null where that is unknown, which breaks nothing."""

    @property
    def named_columns(self) -> tuple[str, ...]:
        """The columns of the expectation, each once."""
        single = [getattr(self, name) for name in self.column_parameters]
        return tuple(dict.fromkeys([*self.key_columns, *(name for name in single if name is not None)]))

    @property
    def read_columns(self) -> tuple[str, ...]:
        """All columns that it reads, each once."""
        nullable = [getattr(self, name) for name in self.nullable_parameters]
        return tuple(dict.fromkeys([*self.named_columns, *self.only, *(name for name in nullable if name is not None)]))

    @property
    def question(self) -> str:
        """The parameters that decide which rows break it, as the text that distinguishes its metrics from others'."""
        parameters = {name: getattr(self, name) for name in self.success_keys if name != "mostly"}
        return json.dumps({"type": self.expectation_type, "parameters": parameters}, sort_keys=True)

    @pydantic.root_validator(skip_on_failure=True)
    @classmethod
    def _check_names(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Refuse a column without a name."""
        names = {f"key_columns[{place}]": name for place, name in enumerate(values["key_columns"])}
        names |= {name: values[name] for name in cls.column_parameters}
        unnamed = [parameter for parameter, name in names.items() if name == ""]
        if unnamed:
            raise ValueError(f"{', '.join(unnamed)}: an empty text names no column")
        return values

    def _check_parameters(self, configuration: ExpectationConfiguration | None = None) -> None:
        """Refuse a configuration with parameters that this expectation does not have."""
        unknown = set(configuration.kwargs if configuration else ()) - set(self.__fields__)
        try:
            assert not unknown, f"{self.expectation_type} has no parameter {', '.join(sorted(unknown))}"
        except AssertionError as error:
            raise InvalidExpectationConfigurationError(str(error)) from error

    @override
    def get_validation_dependencies(
        self, execution_engine: ExecutionEngine[Any] | None = None, runtime_configuration: dict[str, Any] | None = None
    ) -> ValidationDependencies:
        """Return the metrics that it needs; the rows that break it only where a result shows them."""
        dependencies = super().get_validation_dependencies(execution_engine, runtime_configuration)
        domain = {"batch_id": self.batch_id}
        question = {"question": self.question}
        dependencies.set_metric_configuration(COUNTS, MetricConfiguration(COUNTS, domain, question))
        result_format = parse_result_format(self._get_result_format(runtime_configuration))
        if result_format["result_format"] != ResultFormat.BOOLEAN_ONLY:
            value = {**question, "limit": result_format["partial_unexpected_count"]}
            dependencies.set_metric_configuration(FIRST_BROKEN, MetricConfiguration(FIRST_BROKEN, domain, value))
        return dependencies

    @override
    def _validate(
        self,
        metrics: dict[str, Any],
        runtime_configuration: dict[str, Any] | None = None,
        execution_engine: ExecutionEngine[Any] | None = None,
    ) -> dict[str, Any]:
        number, judged, broken = metrics[COUNTS]
        outcome = {"success": judged - broken >= self.mostly * judged}
        if FIRST_BROKEN not in metrics:
            return outcome
        share = 100 * broken / judged if judged else 0.0
        return outcome | {
            "result": {
                "element_count": number,
                "missing_count": number - judged,
                "unexpected_count": broken,
                "unexpected_percent": share,
                "partial_unexpected_list": metrics[FIRST_BROKEN],
            }
        }

    @classmethod
    def _parameter_texts(cls, kwargs: Mapping[str, Any]) -> dict[str, str]:
        """Return the parameters as text for the sentence; a missing one has its default."""
        fields = cls.__fields__
        values = {name: kwargs.get(name, fields[name].default) for name in cls.success_keys}
        texts = {name: str(value) for name, value in values.items()}
        return texts | {"key": ", ".join(values["key_columns"] or [_EVERY_ROW])}

    @classmethod
    def _template(cls, kwargs: Mapping[str, Any]) -> str:
        """Return the sentence, with the condition and share of the judged rows, if these are not all."""
        only = " and ".join(f"{name} is {value}" for name, value in (kwargs.get("only") or {}).items())
        about = f"Where {only}: " if only else ""
        mostly = kwargs.get("mostly", 1)
        share = f" At least {100 * mostly:g} % of the rows must meet it." if mostly != 1 else ""
        return f"{about}{cls.sentence}{share}"

    @classmethod
    @override
    def _prescriptive_template(cls, renderer_configuration: RendererConfiguration[Any]) -> RendererConfiguration[Any]:
        for name, value in cls._parameter_texts(renderer_configuration.kwargs).items():
            renderer_configuration.add_param(name=name, param_type=RendererValueType.STRING, value=value)
        renderer_configuration.template_str = cls._template(renderer_configuration.kwargs)
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
        parameters = configuration.kwargs if configuration else {}
        return [
            RenderedStringTemplateContent(
                content_block_type="string_template",
                string_template={
                    "template": cls._template(parameters),
                    "params": cls._parameter_texts(parameters),
                    "styling": (runtime_configuration or {}).get("styling"),
                },
            )
        ]

    @classmethod
    def sentence_for(cls, kwargs: Mapping[str, Any]) -> str:
        """Return the sentence with its parameters filled in."""
        return Template(cls._template(kwargs)).safe_substitute(cls._parameter_texts(kwargs))
