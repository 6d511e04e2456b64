"""Which mistakes does a mutant plant? Each operator takes one node of a function and returns what stands there instead.

An operator changes what the broker does, never what it reports: texts, logging, assertions, the state-change log and
counters stay as they are.
"""

import ast
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

MOVED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
JUMPS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
SIMPLE = (ast.Expr, ast.Assign, ast.AugAssign)
EXTREMES = {"min": "max", "max": "min"}
WAKE_UPS = frozenset({"set", "wake", "set_result", "notify", "notify_all", "put", "put_nowait"})
REMOVALS = frozenset({"pop", "popitem", "discard", "remove", "clear"})
LOG_CALLS = frozenset({"emit", "debug", "info", "warning", "error", "exception"})
"""Methods that log."""
VERSIONS = ("epoch", "version", "generation")
"""A name with one of these holds a number by which writes and requests are fenced."""
ANY_VERSION = -1
"""ZooKeeper takes a write with this version whatever the znode's version is."""


class Change(NamedTuple):
    """One mistake: what stands in the place of a node, or of the statements from one place of a block on."""

    statements: Sequence[ast.stmt]
    """Those that it changes, in order."""

    operator: str
    before: str
    after: str
    apply: Callable[[], None]
    """Makes the change in the tree that it was derived from."""


class Place(NamedTuple):
    """Where an expression stands."""

    statement: ast.stmt
    """The innermost one around it."""
    parent: ast.AST
    field: str
    item: int | None
    """In a field that is a list."""


def expression_changes(place: Place, node: ast.expr) -> Iterator[Change]:
    """Yield the changes of one expression."""
    for operator, other in _other_expressions(node):
        yield _instead(operator, place, node, other)


def block_changes(function: ast.AST, block: list[ast.stmt]) -> Iterator[Change]:
    """Yield the changes of a block of statements."""
    for number, statement in enumerate(block):
        yield from _left_out(block, number, statement)
        if isinstance(statement, ast.If):
            yield from _guards(statement)
        if isinstance(statement, ast.Return) and isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _other_returns(statement, function)
    for number, (first, second) in enumerate(pairwise(block)):
        if _may_swap(first, second):
            text = f"{_text(first)}; {_text(second)}", f"{_text(second)}; {_text(first)}"
            yield Change((first, second), "statements-swapped", *text, _put_in(block, number, 2, [second, first]))


def early_returns(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Change]:
    """Yield the function ended before each of its statements but the first, where it returns nothing."""
    if not returns_nothing(function) or any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(function)):
        return
    for number, statement in enumerate(function.body[1:], start=1):
        documented = number == 1 and _is_text(function.body[0])
        if not documented and not isinstance(statement, JUMPS) and not only_logs(statement):
            ended: list[ast.stmt] = [ast.copy_location(ast.Return(None), statement), statement]
            text = _text(statement)
            yield Change(
                (statement,), "early-return", text, f"return; {text}", _put_in(function.body, number, 1, ended)
            )


def returns_nothing(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a function is declared to return None."""
    return isinstance(function.returns, ast.Constant) and function.returns.value is None


def only_logs(statement: ast.stmt) -> bool:
    """Return whether a statement is a text, or only logs."""
    return _is_text(statement) or (isinstance(statement, ast.Expr) and called(_waited(statement.value)) in LOG_CALLS)


def called(node: ast.expr) -> str:
    """Return the last name of what is called; empty where nothing is."""
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _waited(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.Await) else node


def _left_out(block: list[ast.stmt], number: int, statement: ast.stmt) -> Iterator[Change]:
    """Yield the block without a statement."""
    operator = _operator_of(statement)
    if operator and not only_logs(statement):
        nothing: list[ast.stmt] = [ast.copy_location(ast.Pass(), statement)]
        yield Change((statement,), operator, _text(statement), "pass", _put_in(block, number, 1, nothing))


def _operator_of(statement: ast.stmt) -> str:
    """Return what leaving a statement out is called; empty for one without which the function is no function."""
    match statement:
        case ast.Expr(value=ast.Await()):
            return "await-out"
        case ast.Expr(value=ast.Call() as call):
            name = called(call)
            return "entry-kept" if name in REMOVALS else "wake-up-out" if name in WAKE_UPS else "call-out"
        case ast.Delete():
            return "entry-kept"
        case ast.AugAssign() | ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            return "assignment-out"
        case _:
            return ""


def _guards(statement: ast.If) -> Iterator[Change]:
    """Yield a condition that never holds and one that always does; a guard is one whose block ends the function."""
    is_guard = isinstance(statement.body[-1], JUMPS) and not statement.orelse
    for value, operator in ((False, "guard-out" if is_guard else "branch-out"), (True, "condition-true")):
        yield _instead(operator, Place(statement, statement, "test", None), statement.test, ast.Constant(value))


def _other_returns(statement: ast.Return, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Change]:
    """Yield a default in the place of what a function returns."""
    value, declared = statement.value, ast.unparse(function.returns) if function.returns else ""
    if value is None or isinstance(value, ast.Constant | ast.List | ast.Dict):
        return
    others: Sequence[str] = ()
    if declared == "bool":
        others = ("True", "False")
    elif declared.endswith("| None"):
        others = ("None",)
    elif declared.startswith("list["):
        others = ("[]",)
    elif declared.startswith("dict["):
        others = ("{}",)
    elif declared == "int":
        others = ("0",)
    for other in others:
        node = ast.parse(other, mode="eval").body
        yield _instead("default-instead", Place(statement, statement, "value", None), value, node)


def _may_swap(first: ast.stmt, second: ast.stmt) -> bool:
    """Return whether two statements can change places without a name that is not bound yet."""
    if not isinstance(first, SIMPLE) or not isinstance(second, SIMPLE) or only_logs(first) or only_logs(second):
        return False
    bound = {node.id for node in ast.walk(first) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound_later = {
        node.id for node in ast.walk(second) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    names = {node.id for node in ast.walk(second) if isinstance(node, ast.Name)}
    names_before = {node.id for node in ast.walk(first) if isinstance(node, ast.Name)}
    return not bound & names and not bound_later & names_before and not (_is_plain(first) and _is_plain(second))


def _is_plain(statement: ast.stmt) -> bool:
    """Return whether a statement only binds names or attributes to what calls nothing: its order changes nothing."""
    return isinstance(statement, ast.Assign) and not any(
        isinstance(node, ast.Call | ast.Await) for node in ast.walk(statement)
    )


def _other_expressions(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            if type(op) in MOVED:
                yield "comparison-moved", ast.Compare(left, [MOVED[type(op)]()], [right])
            if _is_version(left) or _is_version(right):
                yield "version-not-compared", ast.Constant(True)
                yield "version-not-compared", ast.Constant(False)
            elif type(op) in TURNED:
                yield "comparison-turned", ast.Compare(left, [TURNED[type(op)]()], [right])
        case ast.BoolOp(op=op, values=values):
            for number in range(len(values)):
                fewer = values[:number] + values[number + 1 :]
                yield "condition-out", fewer[0] if len(fewer) == 1 else ast.BoolOp(op, fewer)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "comparison-turned", operand
        case ast.IfExp(body=body, orelse=orelse):
            yield "default-instead", body
            yield "default-instead", orelse
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=ast.Constant(value=1)):
            yield "comparison-moved", left
        case ast.Call(func=ast.Name(id=name) as function, args=args, keywords=keywords) if name in EXTREMES:
            yield "max-for-min", ast.Call(ast.Name(EXTREMES[name], function.ctx), args, keywords)
        case ast.Call(func=ast.Attribute(attr="get"), args=[_, default]):
            yield "default-instead", default
        case ast.Call(func=ast.Name(id="Set" | "Delete" | "Check"), keywords=keywords):
            yield from _without_version(node, keywords)


def _without_version(call: ast.Call, keywords: Sequence[ast.keyword]) -> Iterator[tuple[str, ast.expr]]:
    for number, keyword in enumerate(keywords):
        if keyword.arg == "version" and ast.unparse(keyword.value) != "ANY_VERSION":
            other = ast.keyword("version", ast.UnaryOp(ast.USub(), ast.Constant(-ANY_VERSION)))
            yield (
                "version-not-compared",
                ast.Call(call.func, call.args, [*keywords[:number], other, *keywords[number + 1 :]]),
            )


def _is_version(node: ast.expr) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return any(part in name.lower() for part in VERSIONS)


def _instead(operator: str, place: Place, node: ast.expr, other: ast.expr) -> Change:
    """Return the change that puts another expression in the place of one."""
    for each in ast.walk(other):
        if isinstance(each, ast.expr | ast.keyword) and not hasattr(each, "lineno"):
            ast.copy_location(each, node)

    def put() -> None:
        if place.item is None:
            setattr(place.parent, place.field, other)
        else:
            getattr(place.parent, place.field)[place.item] = other

    texts = _text(node), _text(other)
    return Change((place.statement,), operator, *texts, put)


def _put_in(block: list[ast.stmt], number: int, length: int, others: list[ast.stmt]) -> Callable[[], None]:
    """Return what puts other statements in a block, from a place on."""

    def put() -> None:
        block[number : number + length] = others

    return put


def _text(node: ast.AST) -> str:
    """Return a node as Python; of a statement with blocks its first line."""
    text = ast.unparse(node)
    return text.partition("\n")[0] if hasattr(node, "body") and isinstance(node, ast.stmt) else text
