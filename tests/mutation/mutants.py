"""Mutants of a check: its source with one guard negated, weakened or taken out; texts and evidence stay as they are."""

import ast
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import Any

CONTEXT = 24
"""Characters around a change that are shown."""
_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
}
_JOINS = {
    "inner": "left",
    "left": "inner",
    "right": "inner",
    "left_anti": "left_semi",
    "left_semi": "left_anti",
    "full": "inner",
}
_PAIRS = (
    ("min", "max"),
    ("min_by", "max_by"),
    ("least", "greatest"),
    ("lag", "lead"),
    ("exists", "forall"),
    ("first", "last"),
    ("isNull", "isNotNull"),
    ("bool_or", "bool_and"),
    ("array_intersect", "array_except"),
)
_INSTEAD = {name: other for one, two in _PAIRS for name, other in ((one, two), (two, one))}
_SEVERITIES = {"VIOLATION": "NOTE", "NOTE": "VIOLATION", "EXPECTED": "VIOLATION"}
_GUARDS_ALONE = frozenset({"where", "when", "otherwise", "rowsBetween"})
"""Methods that guard: without them what they are called on is left."""
_KEYED = frozenset({"groupBy", "in_order"})
_DECIDING = frozenset({"needs", "assumes"})
"""Declarations of a check on which its answer rests."""
_TEXTS = frozenset({"message", "evidence", "reason"})
_TEXT_CALLS = frozenset({"event", "format_string", "ids", "phrase", "alias"})
_SHOWING = frozenset({"shown", "_described", "_named"})


@dataclass(frozen=True)
class Mutant:
    """One change of a module."""

    module: str
    line: int
    change: str
    """Before and after, as Python."""
    made: Callable[[], ast.Module]
    """Returns the changed module: a copy of the whole, so it is made only when it is tried."""


def mutants(module: str, source: str) -> list[Mutant]:
    """Return every mutant of a module's source."""
    tree = ast.parse(source)
    made = []
    nodes = list(_code(tree, ()))
    deciding = {node.id for _, node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    for path, node in nodes:
        if _only_shows(_at(tree, path[:1]), deciding):
            continue
        for other in _others(node):
            changed = partial(_replaced, tree, path, other)
            made.append(Mutant(module, getattr(node, "lineno", 0), _difference(node, other), changed))
    return made


def _difference(node: ast.AST, other: ast.AST) -> str:
    """Return what stands there and what instead, without what both begin and end with."""
    before, after = ast.unparse(node), ast.unparse(other)
    begin = _alike(before, after)
    end = _alike(before[begin:][::-1], after[begin:][::-1])
    shown = [text[max(0, begin - CONTEXT) : len(text) - max(0, end - CONTEXT)] for text in (before, after)]
    return "  =>  ".join(shown)


def _alike(one: str, other: str) -> int:
    """Return with how many characters both begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


Path = tuple[tuple[str, int | None], ...]
"""Fields of nodes on the way down, each with its place where it is a list."""


def _code(node: ast.AST, path: Path) -> Iterator[tuple[Path, ast.AST]]:
    """Yield the nodes that decide something, each with its path."""
    for name, value in ast.iter_fields(node):
        for place, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.AST) and not _is_text(node, name, child):
                here = (*path, (name, place))
                yield here, child
                yield from _code(child, here)


def _is_text(parent: ast.AST, name: str, child: ast.AST) -> bool:
    if isinstance(child, ast.keyword):
        return child.arg in _TEXTS
    if isinstance(child, ast.Call):
        return _called(child) in _TEXT_CALLS and _called(child) != "alias"
    if isinstance(child, ast.FunctionDef):
        return child.name in _SHOWING
    if isinstance(child, ast.AnnAssign):
        return not (isinstance(child.target, ast.Name) and child.target.id in _DECIDING)
    if isinstance(parent, ast.Call) and name == "args":
        return _called(parent) in _TEXT_CALLS
    if isinstance(parent, (ast.arg, ast.FunctionDef)) and name in ("annotation", "returns"):
        return True
    return isinstance(child, (ast.Import, ast.ImportFrom)) or (isinstance(parent, ast.AnnAssign) and name != "value")


def _only_shows(statement: ast.AST, deciding: set[str]) -> bool:
    """Return whether a statement names what texts and evidence have in common, and nothing decides by it."""
    return isinstance(statement, ast.Assign) and all(
        isinstance(target, ast.Name) and target.id.startswith("_") and target.id not in deciding
        for target in statement.targets
    )


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _others(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what may stand in the place of a node."""
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            for other in _COMPARISONS.get(type(op), ()):
                yield ast.Compare(left, [other()], [right])
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            yield ast.BinOp(left, _OPERATORS[type(op)](), right)
            if isinstance(op, (ast.BitAnd, ast.BitOr)):
                yield left
                yield right
        case ast.UnaryOp(op=ast.Invert() | ast.Not(), operand=operand):
            yield operand
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1)
        case ast.Attribute(value=ast.Name(id="Severity") as of, attr=attr) if attr in _SEVERITIES:
            yield ast.Attribute(of, _SEVERITIES[attr], ast.Load())
        case ast.AnnAssign(target=ast.Name(id="assumes"), value=ast.Tuple(elts=elements)) as declared:
            for number in range(len(elements)):
                fewer = ast.Tuple(elements[:number] + elements[number + 1 :], ast.Load())
                yield ast.AnnAssign(declared.target, declared.annotation, fewer, declared.simple)
        case ast.Tuple(elts=elements) if _is_names(elements):
            for number in range(len(elements) if len(elements) > 1 else 0):
                yield ast.Tuple(elements[:number] + elements[number + 1 :], ast.Load())
        case ast.Call():
            yield from _other_calls(node)


def _is_names(elements: list[ast.expr]) -> bool:
    return bool(elements) and all(isinstance(each, ast.Constant) and isinstance(each.value, str) for each in elements)


def _other_calls(call: ast.Call) -> Iterator[ast.expr]:
    name = _called(call)
    base = call.func.value if isinstance(call.func, ast.Attribute) else None
    if base is not None and name in _INSTEAD:
        yield _with(call, func=ast.Attribute(base, _INSTEAD[name], ast.Load()))
    if base is not None and name in _GUARDS_ALONE and not (isinstance(base, ast.Name) and base.id == "F"):
        yield base
    if name in ("where", "when") and not isinstance(call.args[0], ast.Compare | ast.UnaryOp):
        yield _with(call, args=[_negated(call.args[0]), *call.args[1:]])
    if name == "coalesce" and len(call.args) > 1:
        first = call.args[0]
        is_name = isinstance(first, ast.Constant)
        yield _with(call, args=[first]) if is_name else first
    if name == "unionByName" and base is not None:
        yield base
        yield call.args[0]
    if name == "in_turn" and (len(call.args) > 1 or isinstance(call.args[0], ast.Starred)):
        yield _with(call, args=[_first(call.args[0])])
    if name in _KEYED:
        for number, each in enumerate(call.args):
            if isinstance(each, ast.Constant) and each.value != "run_id":
                yield _with(call, args=call.args[:number] + call.args[number + 1 :])
    for number, keyword in enumerate(call.keywords):
        for value in _other_values(keyword):
            others = [*call.keywords[:number], ast.keyword(keyword.arg, value), *call.keywords[number + 1 :]]
            yield _with(call, keywords=others)


def _other_values(keyword: ast.keyword) -> Iterator[ast.expr]:
    match keyword:
        case ast.keyword(arg="how", value=ast.Constant(value=str(how))):
            yield ast.Constant(_JOINS[how])
        case ast.keyword(arg="on", value=ast.List(elts=elements)):
            for number, each in enumerate(elements):
                if isinstance(each, ast.Constant) and each.value != "run_id":
                    yield ast.List(elements[:number] + elements[number + 1 :], ast.Load())
        case ast.keyword(arg="by", value=ast.Tuple(elts=[first, *others])):
            desc = ast.Attribute(ast.Name("F", ast.Load()), "desc", ast.Load())
            yield ast.Tuple([ast.Call(desc, [first], []), *others], ast.Load())


def _first(of_call: ast.expr) -> ast.expr:
    """Return what comes first where an argument is handed over, be it one or all in a sequence."""
    if isinstance(of_call, ast.Starred):
        return ast.Subscript(of_call.value, ast.Constant(0), ast.Load())
    return of_call


def _negated(condition: ast.expr) -> ast.expr:
    if isinstance(condition, ast.Constant):
        return ast.Constant(f"NOT ({condition.value!s})")
    return ast.UnaryOp(ast.Invert(), condition)


def _with(call: ast.Call, **changed: object) -> ast.Call:
    parts: dict[str, Any] = {"func": call.func, "args": call.args, "keywords": call.keywords} | changed
    return ast.Call(**parts)


def _replaced(tree: ast.Module, path: Path, node: ast.AST) -> ast.Module:
    """Return the tree with another node at a path."""
    changed = deepcopy(tree)
    parent = _at(changed, path[:-1])
    name, place = path[-1]
    if place is None:
        setattr(parent, name, deepcopy(node))
    else:
        getattr(parent, name)[place] = deepcopy(node)
    return ast.fix_missing_locations(changed)


def _at(tree: ast.AST, path: Path) -> ast.AST:
    """Return the node at a path."""
    for name, place in path:
        value = getattr(tree, name)
        tree = value if place is None else value[place]
    return tree
