"""Which script belongs to a seed? Five to thirty calls of a few rooms, in versions that both brokers serve."""

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from harness.client_rules.scripts.script import ASK, AWAIT, KILL, RESTART, STOP, Script, Step
from tools.differential import admin_rooms as admin
from tools.differential import data_rooms as data
from tools.differential import group_rooms as groups
from tools.differential import slow_rooms as slow
from tools.differential.draws import Draw, Versions

Call = Callable[[Draw], Step | Iterable[Step]]
FEWEST, MOST = 5, 30

ROOMS: Mapping[str, Mapping[Call, int]] = {
    "records": {
        data.produce: 6,
        data.fetch: 4,
        data.fetch_in_session: 1,
        data.list_offsets: 4,
        data.delete_records: 1,
        data.offset_for_leader_epoch: 1,
        data.init_idempotent: 1,
        data.describe_producers: 1,
    },
    "topics": {
        admin.create_topics: 4,
        admin.delete_topics: 1,
        admin.create_partitions: 2,
        admin.metadata: 3,
        admin.describe_log_dirs: 1,
        admin.describe_cluster: 1,
        admin.alter_log_dirs: 1,
        admin.elect: 1,
        admin.reassign: 1,
        admin.list_reassignments: 1,
        data.produce: 2,
    },
    "configuration": {
        admin.describe_configs: 4,
        admin.alter_configs: 2,
        admin.incremental_alter: 4,
        data.produce: 1,
    },
    "offsets": {
        groups.commit: 5,
        groups.committed: 4,
        groups.delete_offsets: 1,
        groups.delete_groups: 1,
        groups.describe_groups: 1,
        groups.list_groups: 1,
        groups.find_coordinator: 1,
    },
    "members": {
        groups.join: 5,
        groups.sync: 4,
        groups.heartbeat: 2,
        groups.leave: 1,
        groups.commit: 1,
        groups.committed: 1,
        groups.describe_groups: 1,
        groups.list_groups: 1,
        groups.delete_groups: 1,
    },
    "transactions": {
        data.init_transactional: 2,
        data.add_partitions: 4,
        data.transactional_produce: 4,
        data.add_offsets: 1,
        data.commit_in_transaction: 1,
        data.end: 3,
        data.fetch: 2,
        data.list_offsets: 1,
        data.describe_producers: 1,
        data.describe_transactions: 1,
        data.list_transactions: 1,
        data.write_markers: 1,
        groups.committed: 1,
    },
}
PATIENT_MS = 120_000
FIRST: Mapping[str, Call] = {"transactions": data.init_transactional}
"""What a room begins with."""


def script_of_seed(seed: int, number: int, versions: Versions) -> Script:
    """Return script `number` of a seed; the same arguments give the same script."""
    return tuple(_drawn(Draw(random.Random(f"{seed}/{number}"), versions), 1))


def _drawn(draw: Draw, parts: int) -> list[Step]:
    """Return calls of one or two rooms, so many times as many as a script of one part has."""
    rooms = draw.some(list(ROOMS), 2)
    steps: list[Step] = [data.create(draw) for _ in range(draw.usually(1, 2))]
    steps += [step for room in rooms if room in FIRST for step in _steps(FIRST[room](draw))]
    calls = {call: weight for room in rooms for call, weight in ROOMS[room].items()}
    length = parts * draw.rng.randint(FEWEST, MOST)
    while len(steps) < length:
        (call,) = draw.rng.choices(list(calls), list(calls.values()))
        steps += _steps(call(draw))
    return steps


def restarting_script_of_seed(seed: int, number: int, versions: Versions) -> Script:
    """Return a script in three parts: the broker is stopped cleanly after the first, and killed after the second.

    Members stay for longer than a restart takes. Every call is awaited, as many scripts are played at once.
    """
    draw = Draw(random.Random(f"restarts/{seed}/{number}"), versions)
    steps = [_patient(step) for step in _drawn(draw, 2) if step.how != AWAIT]
    third = len(steps) // 3
    stop, kill = (Step(api=how, version=0, how=RESTART) for how in (STOP, KILL))
    return (*steps[:third], stop, *steps[third : 2 * third], kill, *steps[2 * third :])


def _patient(step: Step) -> Step:
    fields = dict(step.fields)
    if fields.get("session_timeout_ms") == groups.SESSION_MS:
        fields["session_timeout_ms"] = PATIENT_MS
    return replace(step, fields=fields, how=ASK)


def slow_script_of_seed(seed: int, number: int, versions: Versions) -> Script:
    """Return a script whose steps wait until retention, cleaner or expiry have nothing more to do."""
    draw = Draw(random.Random(f"slow/{seed}/{number}"), versions)
    room: Call = draw.one(slow.retention, slow.retention, slow.compaction, slow.expiry, slow.timeouts)
    return tuple(_steps(room(draw)))


def _steps(drawn: Step | Iterable[Step]) -> list[Step]:
    return [drawn] if isinstance(drawn, Step) else list(drawn)
