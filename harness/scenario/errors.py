"""How is a validation error of a model shown? As a sentence that says what is allowed there."""

import difflib
import re
from types import NoneType
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from harness.progress import number_of
from harness.scenario.source import KeyPath, Problem
from harness.store.result import in_our_words

_LONGEST_VALUE = 60
_NO_KEY = re.compile(r"^(literal|list)?\[.*\]$")
"""What pydantic adds to a path: whether the key is wrong, and which of several types a value is not."""


def problems_of(model: type[BaseModel], error: ValidationError, at: KeyPath = ()) -> list[Problem]:
    """Return a problem for each error; `at` is the path of the model's data in the file."""
    return [
        Problem((*at, *(part for part in details["loc"] if not _NO_KEY.search(str(part)))), _sentence(model, details))
        for details in error.errors(include_url=False, include_context=True)
    ]


def parameter_problems(model: type[BaseModel], parameters: dict[str, Any], at: KeyPath) -> list[Problem]:
    """Return what a plugin's model refuses in its `parameters`; `at` is the path of the part that has them."""
    try:
        model.model_validate(parameters)
    except ValidationError as error:
        return problems_of(model, error, (*at, "parameters"))
    return []


def _sentence(model: type[BaseModel], details: ErrorDetails) -> str:
    location = details["loc"]
    match details["type"]:
        case "extra_forbidden":
            return unknown_key(str(location[-1]), allowed_keys(model, location[:-1]))
        case "target":
            return details["msg"]
        case "missing":
            return f"missing{_description(model, location)}"
        case _:
            return f"{in_our_words(details['msg'])}, not {_shown(details['input'])}{_description(model, location)}"


def unknown_key(key: str, allowed: list[str]) -> str:
    """Return the sentence that refuses a key, with the nearest allowed one first."""
    near = difflib.get_close_matches(key, allowed, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return f"unknown key{hint}; allowed: {', '.join(allowed) or 'none'}"


def _shown(value: Any) -> str:
    """Return a short value; of a longer one, which may be anything of the file, no more than what it is."""
    text = repr(value)
    if len(text) <= _LONGEST_VALUE:
        return text
    match value:
        case str():
            return f"a text of {number_of(len(value), 'character')}"
        case list():
            return f"a list of {number_of(len(value), 'value')}"
        case dict():
            return f"a mapping of {number_of(len(value), 'key')}"
    return "a value that is longer than is shown"


def allowed_keys(model: type[BaseModel], location: tuple[str | int, ...]) -> list[str]:
    """Return the field names of the model at `location` within `model`."""
    inner = _model_at(model, location)
    return list(inner.model_fields) if inner else []


def _model_at(model: type[BaseModel], location: tuple[str | int, ...]) -> type[BaseModel] | None:
    current: Any = model
    for step in location:
        if isinstance(step, int):
            current = get_args(current)[0] if get_origin(current) is list else None
        elif isinstance(current, type) and issubclass(current, BaseModel) and step in current.model_fields:
            current = _stated(current.model_fields[step].annotation)
        else:
            return None
    return current if isinstance(current, type) and issubclass(current, BaseModel) else None


def _stated(annotation: Any) -> Any:
    """Return what an optional part is when it is stated."""
    kinds = [kind for kind in get_args(annotation) if kind is not NoneType]
    return kinds[0] if NoneType in get_args(annotation) and len(kinds) == 1 else annotation


def _description(model: type[BaseModel], location: tuple[str | int, ...]) -> str:
    owner = _model_at(model, location[:-1])
    info = owner.model_fields.get(str(location[-1])) if owner and location else None
    return f" ({info.description})" if info and info.description else ""
