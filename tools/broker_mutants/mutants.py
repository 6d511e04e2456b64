"""Which mutants of the broker are there? Each is one change of one function, with a key that outlives other edits."""

import ast
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from types import CodeType

import harness.broker
from tools.broker_mutants.operators import (
    LOG_CALLS,
    Change,
    Place,
    block_changes,
    called,
    early_returns,
    expression_changes,
    only_logs,
    returns_nothing,
)

BROKER = Path(harness.broker.__file__).parent
METADATA = "metadata"
BY_HAND = "by hand"
"""The operator of a mistake that a reader made."""
ROOMS = {
    "administration": "administration",
    "cleaner": "cleaner",
    "configs": "configs",
    "controller": "controller",
    "coordinator": "coordinator",
    "handlers": "handlers",
    "log": "log",
    "metadata_cache.py": METADATA,
    "topics.py": METADATA,
    "replicas": "replicas",
    "transactions": "transactions",
    "zookeeper": "zookeeper",
}
"""Protocol rooms by the folders and modules of the broker."""
LEFT_OUT = {
    "cleaner/statistics.py": "numbers",
    "configs/refused.py": "no schedule has a property that a broker refuses",
    "configs/ignored_properties.py": "a table",
    "controller/statistics.py": "numbers",
    "coordinator/statistics.py": "numbers",
    "log/directories.py": "the simulation has disks in memory",
    "log/file_storage.py": "the simulation has disks in memory",
    "replicas/counters.py": "numbers",
    "transactions/statistics.py": "numbers",
    "zookeeper/kazoo_client.py": "the simulation has a client of its own",
}
"""Modules of these rooms that virtual time never runs, or that decide nothing, with the reason."""
FUNCTIONS_LEFT_OUT = {
    "cleaner/cleaner.py LogCleaner.statistics": "Metrics alone ask for it.",
    "configs/topic_properties.py _idle": "It builds a table, before a mutant is in force.",
    "controller/active.py ActiveController.statistics": "Metrics alone ask for it.",
    "controller/controller.py Controller.event_queue_size": "Metrics alone ask for it.",
    "controller/controller.py Controller.statistics": "Metrics alone ask for it.",
    "controller/controller.py Controller.unclean_leader_elections": "Metrics alone ask for it.",
    "controller/event_queue.py EventQueue.__len__": "Metrics alone ask for it.",
    "coordinator/coordinator.py GroupCoordinator._unload_late": "Only a planted bug calls it.",
    "coordinator/coordinator.py GroupCoordinator.statistics": "Metrics alone ask for it.",
    "coordinator/replicated.py ReplicatedTopic.high_watermark": "Only planted bugs call it.",
    "log/producers.py ProducerStates.oldest_open_ms": "Metrics alone ask for it.",
    "log/sync_log.py read_syncs": "The harness reads it, the broker does not.",
    "replicas/fetch_sessions.py FetchSessions.__len__": "Metrics alone ask for it.",
    "replicas/fetch_sessions.py FetchSessions.partitions": "Metrics alone ask for it.",
    "replicas/replica_manager.py ReplicaManager.late_transactions": "Metrics alone ask for it.",
    "replicas/replicas.py Replicas.offline_count": "Metrics alone ask for it.",
    "transactions/markers.py MarkerDelivery.deliver_unstored": "Only a planted bug calls it.",
    "transactions/markers.py MarkerDelivery.without_destination": "Metrics alone ask for it.",
}
"""Functions of the other modules for which the same holds."""
SHOWING = frozenset({"__repr__", "__str__"})
LOGGING = "_log_"
"""Prefix of functions that return nothing and only log."""
TEXTS = (ast.JoinedStr, ast.Raise, ast.Assert)
DECLARING = frozenset({"annotation", "args", "decorator_list", "returns"})
HOLDING_STATEMENTS = (ast.ExceptHandler, ast.match_case)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One change of one function of the broker."""

    key: str
    """Module, function, operator and texts before and after; a number where these are the same."""
    room: str
    module: str
    """Path within the broker."""
    function: str
    operator: str
    before: str
    after: str
    lines: tuple[int, int]
    """First and last line of the statement that is changed: it is executed where one of these is."""


def source_files() -> list[Path]:
    """Return the modules of the protocol rooms."""
    paths = (
        path for name in ROOMS for path in ([BROKER / name] if name.endswith(".py") else (BROKER / name).glob("*.py"))
    )
    return sorted(path for path in paths if within(path) not in LEFT_OUT and path.name != "__init__.py")


def within(path: Path) -> str:
    """Return a module's path within the broker."""
    return path.relative_to(BROKER).as_posix()


def every_mutant() -> Iterator[Mutant]:
    """Yield every mutant of the protocol rooms."""
    for path in source_files():
        yield from mutants_of(within(path), path.read_text(encoding="utf-8"))


def mutants_of(module: str, source: str) -> Iterator[Mutant]:
    """Yield every mutant of a module, which is given by its path within the broker and its text."""
    for key, function, change in _keyed(module, ast.parse(source)):
        yield Mutant(
            key=key,
            room=ROOMS[module.partition("/")[0]],
            module=module,
            function=function,
            operator=change.operator,
            before=change.before,
            after=change.after,
            lines=_lines(change.statements),
        )


def mistakes_of(file: Path) -> list[Mutant]:
    """Return the mistakes that a reader made by hand: a line each with a name, a place, and the text before and after.

    Raises:
        KeyError: the broker does not have one of these texts, or has it twice.
    """
    found = []
    for line in file.read_text(encoding="utf-8").splitlines():
        told = json.loads(line)
        before, after = told["before"], told["after"]
        source = (BROKER / told["module"]).read_text(encoding="utf-8")
        if source.count(before) != 1:
            raise KeyError(f"{told['id']}: its text is there {source.count(before)} times")
        pairs = zip(before.splitlines(), after.splitlines(), strict=False)
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        first = source[: source.index(before)].count("\n") + 1
        found.append(
            Mutant(
                key=told["id"],
                room=ROOMS[told["module"].partition("/")[0]],
                module=told["module"],
                function=told["function"],
                operator=BY_HAND,
                before=before,
                after=after,
                lines=(first + same, first + max(same, len(before.splitlines()) - 1)),
            )
        )
    return found


def mutated(mutant: Mutant, source: str, filename: str) -> CodeType:
    """Return a module with one mutant in it.

    Raises:
        KeyError: the module has no such mutant.
    """
    if mutant.operator == BY_HAND:
        return compile(source.replace(mutant.before, mutant.after), filename, "exec")
    tree = ast.parse(source, filename)
    for key, _, change in _keyed(mutant.module, tree):
        if key == mutant.key:
            change.apply()
            return compile(tree, filename, "exec")
    raise KeyError(mutant.key)


def _keyed(module: str, tree: ast.Module) -> Iterator[tuple[str, str, Change]]:
    """Yield the changes of a module, each with its key and the function that it is a part of."""
    numbers: Counter[str] = Counter()
    for function, node in _functions(tree, ""):
        if f"{module} {function}" in FUNCTIONS_LEFT_OUT:
            continue
        for change in _changes(node):
            key = f"{module} {function} {change.operator}: {_joined(change.before)} => {_joined(change.after)}"
            numbers[key] += 1
            yield key if numbers[key] == 1 else f"{key} #{numbers[key]}", function, change


def sample(mutants: Iterable[Mutant], size: int, seed: int) -> list[Mutant]:
    """Return some of the mutants: the order depends on the seed and on each key alone, so edits move few of them."""

    def rank(mutant: Mutant) -> bytes:
        return hashlib.sha256(f"{seed} {mutant.key}".encode()).digest()

    return sorted(mutants, key=rank)[:size]


def _joined(text: str) -> str:
    return " ".join(text.split())


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield the functions and methods of a module; those within a function are a part of it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            if not (child.name in SHOWING or (child.name.startswith(LOGGING) and returns_nothing(child))):
                yield f"{prefix}{child.name}", child
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")


def _changes(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Change]:
    yield from early_returns(function)
    yield from _of_block(function, function.body)


def _of_block(function: ast.AST, block: list[ast.stmt]) -> Iterator[Change]:
    yield from block_changes(function, block)
    for statement in block:
        if not only_logs(statement) and not isinstance(statement, TEXTS):
            yield from _of_statement(function, statement)


def _of_statement(function: ast.AST, statement: ast.stmt) -> Iterator[Change]:
    within_it = statement if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) else function
    for block in _blocks(statement):
        yield from _of_block(within_it, block)
    for place, node in _expressions(statement, statement):
        if not isinstance(place.parent, ast.While):  # a loop without an end is stopped by its limit alone
            yield from expression_changes(place, node)


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """Yield the blocks within a statement."""
    for name in ("body", "orelse", "finalbody"):
        if block := getattr(statement, name, None):
            yield block
    for each in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield each.body


def _expressions(statement: ast.stmt, node: ast.AST) -> Iterator[tuple[Place, ast.expr]]:
    """Yield the expressions of a statement that decide something, without those of the statements within it."""
    for field, value in ast.iter_fields(node):
        if isinstance(node, ast.stmt) and field in DECLARING:
            continue
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(child, ast.AST) or isinstance(child, (ast.stmt, *HOLDING_STATEMENTS, *TEXTS)):
                continue
            if isinstance(child, ast.expr):
                if called(child) in LOG_CALLS:
                    continue
                yield Place(statement, node, field, index), child
            yield from _expressions(statement, child)


def _lines(statements: Sequence[ast.stmt]) -> tuple[int, int]:
    """Return the first and the last line of statements, without the blocks within the last one."""
    last = statements[-1]
    ends = min((block[0].lineno - 1 for block in _blocks(last)), default=last.end_lineno or last.lineno)
    return statements[0].lineno, max(ends, last.lineno)
