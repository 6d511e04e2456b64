import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel

from harness.contracts import registry
from harness.contracts.faults import Effect, Fault, FaultContext, Injection
from harness.contracts.members import CLIENT
from harness.contracts.parameters import Strict
from harness.contracts.targets import Target
from harness.errors import ClusterError
from harness.experiment import nemesis as nemesis_module
from harness.experiment.nemesis import Nemesis, brokers_hit, heal_all
from harness.progress import Silent
from harness.run.journal import Journal, fault_results, open_injections, read_journal
from harness.scenario.plan import Plan, PlannedFault
from harness.store.history import InjectionStep
from harness.system.waiting import until
from harness.verdict import FaultVerdict, worst_fault
from tests.fake_cluster import FakeCluster
from tests.raising import raising
from tests.verdicts import CONFIRMED, INCONCLUSIVE, MISMATCH


class NoParameters(Strict):
    pass


@dataclass
class FakeFault(Fault):
    """Does as told, and writes down what was asked of it."""

    log: list[str] = field(default_factory=list)
    raises: dict[str, Exception] = field(default_factory=dict)
    times: dict[str, int] = field(default_factory=dict)
    """How often a step raises, if not always."""
    hangs: set[str] = field(default_factory=set)
    verdict: FaultVerdict = FaultVerdict.CONFIRMED
    _reached: dict[str, asyncio.Event] = field(default_factory=dict)
    name: ClassVar[str] = "fake"

    def reached(self, entry: str) -> asyncio.Event:
        """Return what is set once it has come to a step."""
        return self._reached.setdefault(entry, asyncio.Event())

    async def _do(self, step: str, targets: tuple[int, ...]) -> None:
        entry = f"{step} {','.join(map(str, targets))}"
        self.log.append(entry)
        self.reached(entry).set()
        if step in self.hangs:
            await asyncio.Event().wait()
        if step in self.raises and self.log.count(entry) <= self.times.get(step, len(self.log)):
            raise self.raises[step]

    async def prepare(
        self,
        context: FaultContext,
        target: Target,
        brokers: tuple[int, ...],
        parameters: BaseModel,
        *,
        duration_s: float,
    ) -> Injection:
        await self._do("prepare", brokers)
        return Injection(fault=self.name, targets=brokers, state={"seen": "before"})

    async def inject(self, context: FaultContext, injection: Injection) -> Injection:
        await self._do("inject", injection.targets)
        return Injection(fault=self.name, targets=injection.targets, state={"seen": "after"})

    async def confirm(self, context: FaultContext, injection: Injection) -> Effect:
        await self._do("confirm", injection.targets)
        return Effect(verdict=self.verdict, detail="as told")

    async def heal(self, context: FaultContext, injection: Injection) -> None:
        await self._do("heal", injection.targets)


@dataclass
class Bench:
    """A nemesis over a fake cluster and a fake fault."""

    cluster: FakeCluster
    fault: FakeFault
    path: Path

    async def perform(self, *faults: PlannedFault) -> list[str]:
        """Carry the schedule out and return the journal's steps, each with its injection and targets."""
        journal = Journal(self.path)
        try:
            await self.nemesis(journal, *faults).run()
        finally:
            journal.close()
        return self.steps

    @asynccontextmanager
    async def under_way(self, *faults: PlannedFault) -> AsyncIterator[asyncio.Task[None]]:
        """A schedule that is being carried out, and is cancelled in the end."""
        journal = Journal(self.path)
        running = asyncio.create_task(self.nemesis(journal, *faults).run())
        yield running
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(running, 120)
        journal.close()

    def nemesis(self, journal: Journal, *faults: PlannedFault) -> Nemesis:
        return Nemesis(
            context=self.cluster.context,
            journal=journal,
            faults=faults,
            plugins={"fake": self.fault},
            progress=Silent(),
        )

    async def written(self, step: str) -> None:
        """Wait until a step is in the journal."""

        async def steps() -> list[str]:
            return self.steps

        await until(steps, lambda seen: step in seen, what=step, timeout_s=120, every_s=0.001)

    @property
    def steps(self) -> list[str]:
        return [
            f"{entry.injection} {entry.step} {','.join(entry.targets)}".strip() for entry in read_journal(self.path)
        ]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    fault = FakeFault()

    def only_fault(_name: str) -> Fault:
        return fault

    monkeypatch.setattr(registry, "fault", only_fault)
    monkeypatch.setattr(nemesis_module, "HEAL_PAUSE_S", 0.001)
    monkeypatch.setattr(nemesis_module, "RETRY_S", 0.001)
    return Bench(FakeCluster(root=tmp_path), fault, tmp_path / "journal.jsonl")


def planned(number: int = 0, target: str = "leader(orders,0)", **more: Any) -> PlannedFault:
    values: dict[str, Any] = {
        "injection": number,
        "fault": "fake",
        "at_s": 0.0,
        "duration_s": 0.0,
        "target": target,
        "brokers": [],
        "resolved": "injection",
        "parameters": {},
        "seed": 1,
    }
    return PlannedFault(**{**values, **more})


def drawn(number: int = 0, target: str = "leader(orders,0)", **more: Any) -> PlannedFault:
    """Return one of a mix, beside any number of others."""
    return planned(number, target, **{"beside": 99, **more})


def verdict_of(bench: Bench) -> tuple[FaultVerdict, str]:
    (result,) = fault_results(Plan(scenario="x", seed=1, faults=[planned()], clients=[]), read_journal(bench.path))
    return result.verdict, result.detail


async def test_intent_is_on_disk_before_the_act_and_every_step_after_it(bench: Bench) -> None:
    assert await bench.perform(planned()) == ["0 intended 1", "0 injected 1", "0 confirmed 1", "0 healed 1"]
    assert bench.fault.log == ["prepare 1", "inject 1", "confirm 1", "heal 1"]
    assert [entry.state for entry in read_journal(bench.path)] == [{"seen": "before"}] + 3 * [{"seen": "after"}]


async def test_the_intent_is_readable_while_the_act_goes_on(bench: Bench) -> None:
    bench.fault.hangs = {"inject"}
    async with bench.under_way(planned()):
        await bench.fault.reached("inject 1").wait()
        assert bench.steps == ["0 intended 1"]


async def test_every_step_survives_a_power_loss(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.fstat(fd).st_size))
    await bench.perform(planned())
    lines = bench.path.read_bytes().splitlines(keepends=True)
    assert synced == [sum(map(len, lines[:number])) for number in range(1, 5)]


@pytest.mark.parametrize(
    ("change", "steps", "verdict"),
    [
        pytest.param({"verdict": FaultVerdict.MISMATCH}, ["intended", "injected", "mismatch", "healed"], MISMATCH,
                     id="another effect than asked for"),
        pytest.param({"raises": {"confirm": ClusterError("blind")}}, ["intended", "injected", "inconclusive", "healed"],
                     INCONCLUSIVE, id="no proof to be had"),
        pytest.param({"raises": {"confirm": KeyError("bug")}}, ["intended", "injected", "failed", "healed"],
                     INCONCLUSIVE, id="a bug in the proof"),
        pytest.param({"hangs": {"confirm"}}, ["intended", "injected", "failed", "healed"], INCONCLUSIVE,
                     id="a proof that never ends"),
        pytest.param({"raises": {"inject": ZeroDivisionError("bug")}}, ["intended", "failed", "healed"],
                     INCONCLUSIVE, id="a bug in the act"),
        pytest.param({"raises": {"prepare": ValueError("bug")}}, ["failed"], INCONCLUSIVE,
                     id="a bug before anything was done"),
        pytest.param({"raises": {"heal": ClusterError("stuck")}}, ["intended", "injected", "confirmed", "heal_failed"],
                     CONFIRMED, id="healing fails"),
    ],
)  # fmt: skip
async def test_whatever_happens_what_was_intended_is_healed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], steps: list[str], verdict: FaultVerdict
) -> None:
    monkeypatch.setattr(nemesis_module, "CONFIRM_TIMEOUT_S", 0.01)
    for name, value in change.items():
        setattr(bench.fault, name, value)
    assert [step.split()[1] for step in await bench.perform(planned())] == steps
    assert verdict_of(bench)[0] == verdict


@pytest.mark.parametrize(
    ("failures", "tries", "step", "detail"),
    [
        pytest.param(0, 1, "healed", "", id="it heals at once"),
        pytest.param(1, 2, "healed", "at try 2, after: stuck", id="it heals at the second try"),
        pytest.param(3, 4, "healed", "at try 4, after: stuck", id="it heals at the last try"),
        pytest.param(4, 4, "heal_failed", "stuck", id="it does not heal, and is given up"),
    ],
)
async def test_what_cannot_be_healed_is_tried_again_a_few_times(
    bench: Bench, failures: int, tries: int, step: str, detail: str
) -> None:
    bench.fault.raises, bench.fault.times = {"heal": ClusterError("stuck")}, {"heal": failures}
    await bench.perform(planned())
    assert bench.fault.log.count("heal 1") == tries
    last = read_journal(bench.path)[-1]
    assert (last.step, last.detail) == (step, detail)


async def test_all_tries_to_heal_share_one_deadline(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nemesis_module, "HEAL_TIMEOUT_S", 0.02)
    bench.fault.hangs = {"heal"}
    assert (await bench.perform(planned()))[-1] == "0 heal_failed 1"
    assert bench.fault.log.count("heal 1") == 1


async def test_a_broker_stays_held_until_its_fault_is_healed_at_last(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nemesis_module, "HEAL_PAUSE_S", 0.1)
    bench.fault.raises, bench.fault.times = {"heal": ClusterError("stuck")}, {"heal": 1}
    steps = await bench.perform(planned(0, "1", brokers=[1]), drawn(1, at_s=0.05))
    assert steps.index("1 postponed") < steps.index("0 healed 1") < steps.index("1 intended 1")


async def test_a_journal_that_cannot_be_written_keeps_nothing_from_being_healed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Journal.note

    def note(journal: Journal, number: int, fault: str, step: InjectionStep, **more: Any) -> None:
        if step is not InjectionStep.INTENDED:
            raise OSError("disk full")
        write(journal, number, fault, step, **more)

    monkeypatch.setattr(Journal, "note", note)
    with pytest.raises(OSError, match="disk full"):
        await bench.perform(planned())
    assert bench.fault.log[-1].startswith("heal")


async def test_a_plugin_that_fails_says_why(bench: Bench) -> None:
    bench.fault.raises = {"inject": ZeroDivisionError("by nothing")}
    await bench.perform(planned())
    assert verdict_of(bench) == (INCONCLUSIVE, "ZeroDivisionError: by nothing")


async def test_a_role_that_nobody_has_is_inconclusive_and_nothing_is_done(bench: Bench) -> None:
    bench.cluster.leader = -1
    assert await bench.perform(planned()) == ["0 inconclusive"]
    assert bench.fault.log == []
    assert verdict_of(bench) == (INCONCLUSIVE, "no broker is leader of orders-0 now: nothing was injected")


async def test_zookeeper_not_answering_is_inconclusive(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench.cluster, "partitions", raising(ClusterError("ZooKeeper does not answer")))
    assert await bench.perform(planned()) == ["0 inconclusive"]


async def test_two_faults_may_overlap_on_different_brokers(bench: Bench) -> None:
    steps = await bench.perform(
        planned(0, "followers(orders,0)", duration_s=0.05), planned(1, "leader(orders,0)", at_s=0.01)
    )
    assert steps.index("1 healed 1") < steps.index("0 healed 0,2")
    assert {"0 confirmed 0,2", "1 confirmed 1"} <= set(steps)


HELD = "refused, because another fault is in force: broker 1 by injection 0"


@pytest.mark.parametrize("of_mix", [pytest.param(True, id="of a mix"), pytest.param(False, id="of a schedule")])
async def test_a_fault_on_a_broker_that_is_held_is_postponed_until_it_is_free(bench: Bench, of_mix: bool) -> None:
    second = (drawn if of_mix else planned)(1, at_s=0.01)
    steps = await bench.perform(planned(0, "1", brokers=[1], duration_s=0.05), second)
    assert steps == [
        *("0 intended 1", "0 injected 1", "0 confirmed 1", "1 postponed", "0 healed 1"),
        *("1 intended 1", "1 injected 1", "1 confirmed 1", "1 healed 1"),
    ]
    assert [entry.detail for entry in read_journal(bench.path) if entry.step is InjectionStep.POSTPONED] == [HELD]


async def test_it_is_refused_when_the_broker_is_held_for_too_long(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nemesis_module, "POSTPONED_S", 0.02)
    bench.fault.hangs = {"confirm"}
    async with bench.under_way(planned(0, "1", brokers=[1]), drawn(1, at_s=0.01)):
        await bench.fault.reached("confirm 1").wait()
        await bench.written("1 inconclusive")
    refusal = next(entry for entry in read_journal(bench.path) if entry.step is InjectionStep.INCONCLUSIVE)
    assert (refusal.injection, refusal.detail) == (1, f"after 0.02 s: {HELD}")


async def test_those_that_are_postponed_get_their_turn_in_their_order(bench: Bench) -> None:
    steps = await bench.perform(
        planned(0, "1", brokers=[1], duration_s=0.05),
        drawn(1, "1,2", brokers=[1, 2], at_s=0.01, duration_s=0.02),
        drawn(2, "2", brokers=[2], at_s=0.02),
    )
    assert [step for step in steps if step.endswith("postponed") or "healed" in step] == [
        *("1 postponed", "2 postponed", "0 healed 1", "1 healed 1,2", "2 healed 2"),
    ]


async def test_the_end_of_one_fault_is_the_begin_of_the_next(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nemesis_module, "RETRY_S", 30.0)
    async with asyncio.timeout(20):
        steps = await bench.perform(
            planned(0, "1", brokers=[1], duration_s=0.05), drawn(1, "1", brokers=[1], at_s=0.01)
        )
    assert steps.index("0 healed 1") < steps.index("1 injected 1")


@pytest.mark.parametrize(
    ("motif", "postponed"),
    [
        pytest.param("start-kill", False, id="an earlier step of its motif does not hold up one that overlaps"),
        pytest.param("expire-stop", True, id="a step of another motif does"),
    ],
)
async def test_steps_of_a_motif_may_overlap_on_one_broker(bench: Bench, motif: str, postponed: bool) -> None:
    first = drawn(0, "1", brokers=[1], duration_s=0.05, motif="start-kill")
    second = drawn(1, "1", brokers=[1], at_s=0.01, motif=motif, overlaps=True)
    steps = await bench.perform(first, second)
    assert ("1 postponed" in steps) is postponed
    assert (steps.index("1 injected 1") < steps.index("0 healed 1")) is not postponed


async def test_a_step_whose_moment_does_not_come_waits_for_the_end_of_the_one_before(bench: Bench) -> None:
    first = drawn(0, "1", brokers=[1], duration_s=0.05, motif="start-kill")
    waits = {"after": "broker-started", "within_s": 0.01}
    steps = await bench.perform(first, drawn(1, "1", brokers=[1], motif="start-kill", overlaps=True, **waits))
    assert "1 postponed" in steps
    assert steps.index("0 healed 1") < steps.index("1 injected 1")


@pytest.mark.parametrize(
    ("first", "second", "postponed"),
    [
        pytest.param(0, 0, True, id="each is to be alone"),
        pytest.param(0, 5, True, id="the first one is to be alone"),
        pytest.param(None, 0, True, id="the second one is to be alone, beside a schedule"),
        pytest.param(1, 1, False, id="two may be in force at once"),
    ],
)
async def test_no_more_are_in_force_at_once_than_the_mix_says(
    bench: Bench, first: int | None, second: int, postponed: bool
) -> None:
    steps = await bench.perform(
        planned(0, "1", brokers=[1], duration_s=0.05, beside=first),
        planned(1, "2", brokers=[2], at_s=0.01, beside=second),
    )
    assert ("1 postponed" in steps) is postponed
    assert {"0 confirmed 1", "1 confirmed 2"} <= set(steps)


async def test_a_role_that_nobody_has_for_a_moment_is_waited_for(bench: Bench) -> None:
    bench.cluster.leader = -1
    async with bench.under_way(drawn()):
        await bench.written("0 postponed")
        bench.cluster.leader = 2
        await bench.fault.reached("heal 2").wait()
    assert bench.steps[1] == "0 intended 2"


async def test_cancelled_while_it_is_postponed_it_goes_at_once_and_has_nothing_to_heal(bench: Bench) -> None:
    bench.cluster.leader = -1
    async with bench.under_way(drawn()):
        await bench.written("0 postponed")
    assert bench.steps == ["0 postponed"]
    verdict, detail = verdict_of(bench)
    assert verdict is INCONCLUSIVE
    assert detail == (
        "it was not carried out: the run ended while it was postponed, because no broker is leader of orders-0 now:"
        " nothing was injected"
    )


@pytest.mark.parametrize(
    ("of_mix", "failures", "carried_out", "verdict"),
    [
        pytest.param(True, 0, 1, CONFIRMED, id="what is seen needs no spare"),
        pytest.param(True, 1, 2, CONFIRMED, id="a spare that is seen makes good what was not"),
        pytest.param(True, 2, 3, CONFIRMED, id="where one spare is not seen the next one is carried out"),
        pytest.param(True, 3, 3, INCONCLUSIVE, id="there are so many spares and no more"),
        pytest.param(False, 1, 1, INCONCLUSIVE, id="what the schedule states has no spare"),
    ],
)
async def test_spares_are_carried_out_for_what_was_not_seen(
    bench: Bench, of_mix: bool, failures: int, carried_out: int, verdict: FaultVerdict
) -> None:
    bench.fault.raises, bench.fault.times = {"confirm": ClusterError("blind")}, {"confirm": failures}
    faults = [planned(number, "1", brokers=[1], beside=0, spare=number > 0) for number in range(3)]
    faults[0] = planned(0, "1", brokers=[1], beside=0 if of_mix else None)
    await bench.perform(*faults)
    results = fault_results(Plan(scenario="x", seed=1, faults=faults, clients=[]), read_journal(bench.path))
    assert len(results) == carried_out
    assert worst_fault(result.verdict for result in results if not result.compensated) is verdict
    assert sum(result.verdict is INCONCLUSIVE for result in results) == min(failures, carried_out), "each is shown"


@pytest.mark.parametrize("failures", [pytest.param(1, id="one of two fails"), pytest.param(2, id="both fail")])
async def test_no_spare_makes_a_bug_of_a_fault_good(bench: Bench, failures: int) -> None:
    bench.fault.raises, bench.fault.times = {"confirm": KeyError("bug")}, {"confirm": failures}
    faults = [planned(number, "1", brokers=[1], beside=0, spare=number > 1) for number in range(4)]
    await bench.perform(*faults)
    results = fault_results(Plan(scenario="x", seed=1, faults=faults, clients=[]), read_journal(bench.path))
    assert [result.verdict for result in results] == [INCONCLUSIVE] * failures + [CONFIRMED] * (2 - failures)
    assert not any(result.compensated for result in results)


def test_what_had_no_room_in_the_plan_is_inconclusive() -> None:
    (result,) = fault_results(Plan(scenario="x", seed=1, faults=[], clients=[], left_out=3), [])
    assert (result.verdict, result.fault, result.targets) == (INCONCLUSIVE, "mix", [])
    assert result.detail == "the scenario states 3 more faults, which did not fit into the load"


async def test_a_broker_is_free_again_after_the_heal(bench: Bench) -> None:
    steps = await bench.perform(planned(0, "1", brokers=[1]), planned(1, at_s=0.03))
    assert "1 confirmed 1" in steps


async def test_a_slow_fault_delays_no_other(bench: Bench) -> None:
    bench.fault.hangs = {"inject"}
    async with bench.under_way(planned(0, "0", brokers=[0]), planned(1, "2", brokers=[2], at_s=0.01)):
        await bench.fault.reached("inject 2").wait()


async def test_an_injection_that_comes_late_says_so(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nemesis_module, "LATE_S", -1.0)  # in virtual time none is late
    await bench.perform(planned())
    assert read_journal(bench.path)[0].detail.endswith("s late")


@pytest.mark.parametrize("step", ["inject", "confirm"])
async def test_cancelled_in_the_middle_of_a_fault_it_heals_and_then_goes(bench: Bench, step: str) -> None:
    bench.fault.hangs = {step}
    async with bench.under_way(planned(), planned(1, "0", brokers=[0], at_s=60)):
        await bench.fault.reached(f"{step} 1").wait()
    assert bench.steps[0] == "0 intended 1"
    assert bench.steps[-2:] == ["0 inconclusive 1", "0 healed 1"]
    assert verdict_of(bench) == (INCONCLUSIVE, "interrupted before its effect was seen")


async def test_cancelled_again_it_does_not_wait_for_the_heal(bench: Bench) -> None:
    bench.fault.hangs = {"confirm", "heal"}
    async with bench.under_way(planned()) as running:
        await bench.fault.reached("confirm 1").wait()
        running.cancel()
        await bench.fault.reached("heal 1").wait()
    assert len(open_injections(read_journal(bench.path))) == 1


async def test_another_process_heals_from_the_journal_alone(bench: Bench) -> None:
    journal = Journal(bench.path)
    for number, steps in ((0, ("intended", "injected", "healed")), (1, ("intended",)), (2, ("intended", "injected"))):
        injection = Injection(fault="fake", targets=(number,))
        for step in steps:
            journal.note(number, "fake", InjectionStep(step), injection=injection)
    journal.close()
    assert await heal_all(bench.path, bench.cluster.context, Silent()) == []
    assert bench.fault.log == ["heal 2", "heal 1"]
    assert bench.steps[-2:] == ["2 healed 2", "1 healed 1"]
    assert await heal_all(bench.path, bench.cluster.context, Silent()) == []
    assert len(bench.fault.log) == 2


async def test_what_cannot_be_healed_is_told(bench: Bench) -> None:
    bench.fault.raises = {"heal": ClusterError("stuck")}
    await bench.perform(planned())
    assert await heal_all(bench.path, bench.cluster.context, Silent()) == ["fake broker 1 could not be healed"]
    assert verdict_of(bench)[1].endswith("; it could not be healed: stuck")


async def test_no_journal_means_nothing_to_heal(bench: Bench) -> None:
    assert await heal_all(bench.path, bench.cluster.context, Silent()) == []


def test_a_client_that_is_hit_is_named_and_can_be_healed_from_the_journal(tmp_path: Path) -> None:
    hit = Injection(fault="kill", targets=(), state={CLIENT: "w1-group-1-member-2"})
    journal = Journal(tmp_path / "journal.jsonl")
    journal.note(0, "kill", InjectionStep.INJECTED, injection=hit)
    journal.close()
    (entry,) = read_journal(tmp_path / "journal.jsonl")
    assert entry.targets == ("w1-group-1-member-2",)
    assert [each.injection for each in open_injections([entry])] == [hit]
    assert brokers_hit("kill", hit) == "kill client w1-group-1-member-2"


def test_a_fault_that_was_never_reached_is_inconclusive() -> None:
    (result,) = fault_results(Plan(scenario="x", seed=1, faults=[planned()], clients=[]), [])
    assert result.verdict is INCONCLUSIVE
    assert "it was not carried out" in result.detail
