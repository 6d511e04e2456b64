"""A cluster that keeps every promise by construction, for no time passes within a step: it writes evidence of each."""

import json
from dataclasses import dataclass, field
from random import Random
from typing import Any

from harness.events import (
    Append,
    BecomeFollower,
    BecomeLeader,
    BrokerRegistered,
    BrokerStart,
    ConfigurationInForce,
    ControlledPartition,
    ControllerElected,
    ControllerEvent,
    ControllerReady,
    ControllerResigned,
    ControlReceive,
    Election,
    Event,
    HighWatermark,
    IsrPropose,
    LeaveRequest,
    LogsClose,
    OffsetForLeaderEpoch,
    PartitionState,
    RegistrationsRead,
    Truncate,
    ZkWrite,
)
from harness.store.history import InjectionStep, JournalEntry, ReplicaRecord, ReplicaState
from harness.values import ACKS_ALL
from tests.analysis.model_evidence import MS, Evidence
from tests.analysis.model_log import NONE, Entry, Replica
from tests.analysis.model_transaction_dumps import dump_transactions

BROKERS = (1, 2, 3)
ORDERS, LOOSE, OFFSETS = "orders", "loose", "__consumer_offsets"
PAYMENTS, TRANSACTIONS = "payments", "__transaction_state"
CONFIGS = {ORDERS: {"min.insync.replicas": "2"}, LOOSE: {"unclean.leader.election.enable": "true"}}
PROPERTIES = {"min.insync.replicas": "1", "retention.ms": "604800000"}
"""What brokers' properties files state."""
INHERITED_BY_TOPICS = ";".join(f"{name}={value}" for name, value in PROPERTIES.items())
NO_REPLICA = "no replica is eligible"


@dataclass
class Broker:
    id: int
    alive: bool = False
    lives: int = 0
    seq: int = 0
    session: str = ""
    czxid: int = NONE
    hosts: set[str] = field(default_factory=set)
    """Topics of which it has hosted replicas in this life."""


@dataclass
class Partition:
    topic: str
    number: int
    assigned: list[int]
    leader: int = NONE
    epoch: int = NONE
    isr: list[int] = field(default_factory=list)
    version: int = NONE
    controller_epoch: int = 0
    epoch_start: int = 0
    replicas: dict[int, Replica] = field(default_factory=dict)

    @property
    def path(self) -> str:
        return f"/brokers/topics/{self.topic}/partitions/{self.number}/state"

    @property
    def unclean_allowed(self) -> bool:
        return self.topic == LOOSE

    @property
    def led(self) -> Replica:
        return self.replicas[self.leader]

    @property
    def names(self) -> dict[str, Any]:
        return {"topic": self.topic, "partition": self.number}

    def state(self) -> PartitionState:
        return PartitionState(
            leader=self.leader,
            leader_epoch=self.epoch,
            isr=list(self.isr),
            zk_version=self.version,
            controller_epoch=self.controller_epoch,
        )


class Cluster:
    """Three brokers; topics that are kept, may be elected uncleanly, have transactions, or are internal."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.out = Evidence()
        self.brokers = {broker: Broker(broker) for broker in BROKERS}
        self.controller = NONE
        self.controller_epoch = 0
        self.next_producer_id = 0
        self.injections: dict[int, int] = {}
        """Number of the injection that ended a broker."""
        self.out.znode("/controller_epoch", "0")
        for broker in BROKERS:
            self._register(broker)
        self._elect_controller()
        self.partitions: list[Partition] = []
        for topic, partitions in (
            (ORDERS, random.randint(1, 2)),
            (LOOSE, 1),
            (OFFSETS, 1),
            (PAYMENTS, 2),
            (TRANSACTIONS, 1),
        ):
            self._create(topic, partitions)

    # What happens to brokers.
    def kill(self, broker: int) -> None:
        """End a process: its session ends, and the controller moves what it led."""
        number = self.injections[broker] = len(list(self.out.lines("journal", step=InjectionStep.INTENDED)))
        for step in (InjectionStep.INTENDED, InjectionStep.INJECTED, InjectionStep.CONFIRMED):
            self._journal(number, step, broker)
        self._gone(broker)

    def shut_down(self, broker: int) -> None:
        """Stop a broker that asks for it first, so that it leads nothing when it goes."""
        self.say(broker, LeaveRequest(tries_left=2))
        for partition in self.partitions:
            if partition.leader == broker:
                self._elect(partition, "controlled_shutdown", leaving=[broker])
            elif broker in partition.isr and len(partition.isr) > 1:
                self._remove(partition, broker)
        self.say(broker, LogsClose())
        self._gone(broker)

    def restart(self, broker: int) -> None:
        """Start a broker that is down; its log is what it was, its high watermark what was checkpointed last."""
        self._register(broker)
        if broker in self.injections:
            self._journal(self.injections.pop(broker), InjectionStep.HEALED, broker)
        began_ns = self._read()
        for partition in self.partitions:
            replica = partition.replicas[broker]
            replica.high_watermark = self.random.randint(0, replica.high_watermark)
            replica.role_epoch = NONE
            if partition.leader == NONE:
                self._elect(partition, "offline")
            if replica.role_epoch == NONE and partition.leader != NONE:
                self._tell(partition, [broker])
        self._changed(began_ns)

    def move_controller(self) -> None:
        self.out.znode("/controller", None)
        if self.brokers[self.controller].alive:
            self.say(self.controller, ControllerResigned(controller_epoch=self.controller_epoch, reason="model"))
        self._elect_controller()

    def _gone(self, broker: int) -> None:
        self.brokers[broker].alive = False
        self.out.tick(50)
        self.out.znode(f"/brokers/ids/{broker}", None)
        if self.controller == broker:
            self.move_controller()
        began_ns = self._read()
        for partition in self.partitions:
            if partition.leader == broker:
                self._elect(partition, "offline")
            elif broker in partition.isr and len(partition.isr) > 1:
                self._remove(partition, broker)
        self._changed(began_ns)

    def _read(self) -> int:
        """Have the controller read which brokers are registered; return when it began."""
        began_ns = self.out.now_ns
        registrations = [(broker, self.brokers[broker].czxid) for broker in self.alive()]
        self.say(
            self.controller,
            RegistrationsRead(controller_epoch=self.controller_epoch, registrations=registrations),
        )
        return began_ns

    def _changed(self, began_ns: int) -> None:
        """End what the controller does about a broker that came or went."""
        duration_ms = (self.out.now_ns - began_ns) / MS
        event = ControllerEvent(name="BrokerChange", queued_ms=0.0, duration_ms=duration_ms + 1, outcome="ok")
        self.say(self.controller, event)

    def _register(self, broker: int) -> None:
        each = self.brokers[broker]
        each.alive, each.lives, each.seq, each.czxid, each.session = True, each.lives + 1, 0, NONE, ""
        each.hosts.clear()
        self.say(broker, BrokerStart(config_digest="d", clean_marker=False, planted_bugs=[]))
        each.session = f"0x{broker}0{each.lives}"
        self.out.znode(f"/brokers/ids/{broker}", "{}", owner=each.session)
        each.czxid = self.out.zxid
        self.say(broker, BrokerRegistered(czxid=each.czxid))

    def _elect_controller(self) -> None:
        self.controller = self.random.choice(self.alive())
        self.controller_epoch += 1
        owner = self.brokers[self.controller].session
        self.out.znode(
            "/controller", json.dumps({"brokerid": self.controller, "kraftControllerEpoch": -1}), owner=owner
        )
        version = self.out.znode("/controller_epoch", str(self.controller_epoch), multi=True)
        elected = ControllerElected(controller_epoch=self.controller_epoch, epoch_zk_version=version)
        self.say(self.controller, elected)
        self._read()
        self.say(self.controller, ControllerReady(controller_epoch=self.controller_epoch))

    def update_metadata(self) -> None:
        """Make the controller send the live brokers and leaders to all brokers."""
        states = [
            ControlledPartition(
                **partition.names,
                leader=partition.leader,
                leader_epoch=partition.epoch,
                isr=partition.isr,
                zk_version=partition.version,
                replicas=partition.assigned,
                verdict="applied",
            )
            for partition in self.partitions
        ]
        for broker in self.alive():
            self.say(
                broker,
                ControlReceive(
                    api="UpdateMetadata",
                    sender=self.controller,
                    controller_epoch=self.controller_epoch,
                    request_broker_epoch=self.brokers[broker].czxid,
                    verdict="applied",
                    partitions=states,
                    live_brokers=self.alive(),
                ),
            )

    def claim_producer_ids(self) -> int:
        """Have the controller's broker claim the next block of producer ids; return its first."""
        first, self.next_producer_id = self.next_producer_id, self.next_producer_id + 1000
        block = {"version": 1, "broker": self.controller, "block_start": str(first), "block_end": str(first + 999)}
        self.out.znode("/latest_producer_id_block", json.dumps(block))
        return first

    # What the controller decides.
    def prefer(self, partition: Partition) -> None:
        """Give a partition back to the first of its replicas."""
        first = partition.assigned[0]
        if partition.leader not in (NONE, first) and first in partition.isr and self.brokers[first].alive:
            self._elect(partition, "preferred")

    def _create(self, topic: str, partitions: int) -> None:
        self.out.znode(f"/config/topics/{topic}", json.dumps({"version": 1, "config": CONFIGS.get(topic, {})}))
        assigned = {str(number): _assigned(number) for number in range(partitions)}
        self.out.znode(f"/brokers/topics/{topic}", json.dumps({"version": 2, "partitions": assigned}))
        for number in range(partitions):
            partition = Partition(topic, number, _assigned(number))
            partition.replicas = {broker: Replica() for broker in partition.assigned}
            self.partitions.append(partition)
            self._elect(partition, "initialize")

    def _elect(self, partition: Partition, strategy: str, leaving: list[int] | None = None) -> None:
        gone = leaving or []
        online = [broker for broker in self.alive() if broker not in gone]
        candidates = [broker for broker in partition.assigned if broker in online]
        before = None if strategy == "initialize" else partition.state()
        in_sync = candidates if before is None else [broker for broker in candidates if broker in partition.isr]
        unclean = not in_sync and strategy == "offline" and partition.unclean_allowed
        chosen = candidates if unclean else in_sync
        if chosen:
            isr = chosen[:1] if unclean else sorted(in_sync, key=(partition.isr or in_sync).index)
            self._write(partition, leader=chosen[0], isr=isr)
        self.say(
            self.controller,
            Election(
                **partition.names,
                strategy=strategy,
                trigger="model",
                controller_epoch=self.controller_epoch,
                previous=before,
                online=online,
                shutting_down=gone,
                assigned=partition.assigned,
                profile="2.5",
                unclean_allowed=partition.unclean_allowed,
                unclean=unclean,
                result=partition.state() if chosen else None,
                error="" if chosen else NO_REPLICA,
            ),
        )
        if chosen:
            self._tell(partition, self.alive())
        elif strategy == "offline" and partition.leader != NONE:
            self._remove(partition, partition.leader)

    def _remove(self, partition: Partition, broker: int) -> None:
        """Take a replica that is gone out of the ISR; the last member stays, and a leader leaves no leader."""
        leader = NONE if partition.leader == broker else partition.leader
        self._write(partition, leader=leader, isr=[each for each in partition.isr if each != broker] or partition.isr)
        if leader != NONE:
            self._tell(partition, self.alive())

    def _write(self, partition: Partition, *, leader: int, isr: list[int]) -> None:
        partition.leader, partition.isr, partition.epoch = leader, isr, partition.epoch + 1
        partition.controller_epoch = self.controller_epoch
        self._store(partition, self.controller, "controller")

    def _store(self, partition: Partition, broker: int, by: str) -> None:
        expected = partition.version
        state = {
            name: getattr(partition.state(), name) for name in ("leader", "leader_epoch", "isr", "controller_epoch")
        }
        partition.version = self.out.znode(partition.path, json.dumps(state))
        self.say(
            broker,
            ZkWrite(
                path=partition.path,
                op="create" if expected == NONE else "set",
                expected_version=expected,
                result="ok",
                new_version=partition.version,
                by=by,
                controller_epoch=partition.controller_epoch,
            ),
        )

    # What brokers do when they are told, and of themselves.
    def _tell(self, partition: Partition, brokers: list[int]) -> None:
        leader_first = sorted(brokers, key=lambda broker: broker != partition.leader)
        for broker in leader_first:
            replica = partition.replicas[broker]
            state = ControlledPartition(
                **partition.names,
                leader=partition.leader,
                leader_epoch=partition.epoch,
                isr=partition.isr,
                zk_version=partition.version,
                replicas=partition.assigned,
                verdict="applied",
            )
            told = ControlReceive(
                api="LeaderAndIsr",
                sender=self.controller,
                controller_epoch=self.controller_epoch,
                request_broker_epoch=self.brokers[broker].czxid,
                verdict="applied",
                partitions=[state],
                live_brokers=None,
            )
            known: dict[str, Any] = {
                **partition.names,
                "leader_epoch": partition.epoch,
                "previous_leader_epoch": replica.role_epoch,
                "log_start_offset": 0,
                "high_watermark": replica.high_watermark,
                "log_end_offset": replica.end,
            }
            replica.role_epoch = partition.epoch
            self._host(partition, broker)
            if broker == partition.leader:
                self.say(broker, BecomeLeader(**known, isr=partition.isr, zk_version=partition.version))
                self.say(broker, told)
                partition.epoch_start = replica.end
                replica.assign(partition.epoch, replica.end)
                self._advance(partition)
            else:
                self.say(broker, BecomeFollower(**known, leader=partition.leader))
                self.say(broker, told)
                self._truncate(partition, broker)

    def _host(self, partition: Partition, broker: int) -> None:
        """Have the broker say what it acts on for a topic that it did not host."""
        hosts = self.brokers[broker].hosts
        if partition.topic not in hosts:
            hosts.add(partition.topic)
            own = {name: value for name, value in CONFIGS.get(partition.topic, {}).items() if name in PROPERTIES}
            properties = [f"{name}={value}" for name, value in (PROPERTIES | own).items()]
            self.say(broker, ConfigurationInForce(**partition.names, hosted=True, properties=properties))

    def _truncate(self, partition: Partition, broker: int) -> None:
        replica = partition.replicas[broker]
        asked_epoch = NONE
        while replica.latest_epoch not in (NONE, asked_epoch):
            asked_epoch = replica.latest_epoch
            answer, answer_end = partition.led.end_of(asked_epoch)
            self.say(
                partition.leader,
                OffsetForLeaderEpoch(
                    **partition.names,
                    sender=broker,
                    current_leader_epoch=partition.epoch,
                    asked_epoch=asked_epoch,
                    answer_epoch=answer,
                    end_offset=answer_end,
                    error=0,
                    leader_epoch=partition.epoch,
                    log_end_offset=partition.led.end,
                    leader_epochs=[*partition.led.cache],
                ),
            )
            local, local_end = replica.common_end(answer)
            if local == NONE:
                to = min(answer_end, replica.end)
            elif local == answer:
                to = min(local_end, answer_end, replica.end)
            else:
                to = min(local_end, replica.end)
            if to < replica.end:
                self.say(
                    broker,
                    Truncate(
                        **partition.names,
                        log_end_offset=replica.end,
                        to=to,
                        high_watermark=replica.high_watermark,
                        leader_epoch=partition.epoch,
                        reason="epoch",
                        asked_epoch=asked_epoch,
                        answer_epoch=answer,
                        answer_end_offset=answer_end,
                        latest_epoch=asked_epoch,
                        local_epoch=local,
                        local_end_offset=local_end,
                    ),
                )
            replica.cut(to)

    def append(self, partition: Partition, entries: list[Entry], acks: int = ACKS_ALL) -> None:
        """Write a batch to the leader's log."""
        base = partition.led.end
        for entry in entries:
            partition.led.append(entry)
        self._appended(partition, partition.leader, base, entries, acks)
        self._advance(partition)

    def fetch(self, partition: Partition, follower: int, limit: int | None = None) -> None:
        """Have a follower come nearer to its leader's end, by so many records at most."""
        replica, base = partition.replicas[follower], partition.replicas[follower].end
        entries = partition.led.log[base : None if limit is None else base + limit]
        for entry in entries:
            replica.append(entry)
        if entries:
            self._appended(partition, follower, base, entries)
        self._mark(partition, follower, min(partition.led.high_watermark, replica.end))
        self._advance(partition)

    def shrink(self, partition: Partition, follower: int) -> None:
        if partition.leader != NONE and follower in partition.isr and follower != partition.leader:
            self._propose(partition, "shrink", [broker for broker in partition.isr if broker != follower])
            self._advance(partition)

    def expand(self, partition: Partition, follower: int) -> None:
        """Take a follower into the ISR, if it is there and has what that takes."""
        if partition.leader == NONE or follower in partition.isr or not self.brokers[follower].alive:
            return
        if partition.replicas[follower].end >= max(partition.led.high_watermark, partition.epoch_start):
            self._propose(partition, "expand", [*partition.isr, follower])

    def _propose(self, partition: Partition, kind: str, isr: list[int]) -> None:
        self.say(
            partition.leader,
            IsrPropose(
                **partition.names,
                kind=kind,
                leader_epoch=partition.epoch,
                old=partition.isr,
                new=isr,
                zk_version=partition.version,
                log_end_offset=partition.led.end,
                high_watermark=partition.led.high_watermark,
                epoch_start_offset=partition.epoch_start,
                ends=[partition.replicas[broker].end for broker in isr],
            ),
        )
        partition.isr = isr
        self._store(partition, partition.leader, "leader")

    def _advance(self, partition: Partition) -> None:
        self._mark(partition, partition.leader, min(partition.replicas[broker].end for broker in partition.isr))

    def _mark(self, partition: Partition, broker: int, to: int) -> None:
        """Raise a replica's high watermark."""
        replica, leads = partition.replicas[broker], broker == partition.leader
        if to <= replica.high_watermark:
            return
        mark = HighWatermark(
            **partition.names,
            role="leader" if leads else "follower",
            leader_epoch=partition.epoch,
            old=replica.high_watermark,
            new=to,
            log_end_offset=replica.end,
            isr=partition.isr if leads else [],
            zk_version=partition.version if leads else NONE,
            cause="model",
        )
        replica.high_watermark = to
        self.say(broker, mark)

    def _appended(
        self, partition: Partition, broker: int, base: int, entries: list[Entry], acks: int | None = None
    ) -> None:
        self.say(
            broker,
            Append(
                **partition.names,
                role="leader" if broker == partition.leader else "follower",
                leader_epoch=partition.epoch,
                base_offset=base,
                last_offset=base + len(entries) - 1,
                batch_epoch=entries[0].epoch,
                crc=0,
                producer_id=entries[0].producer_id,
                producer_epoch=0 if entries[0].producer_id != NONE else NONE,
                base_sequence=entries[0].sequence,
                isr_size=len(partition.isr),
                acks=acks,
            ),
        )

    # What is known of it.
    def alive(self) -> list[int]:
        return [each.id for each in self.brokers.values() if each.alive]

    def followers(self, partition: Partition) -> list[int]:
        """The live replicas that follow a leader."""
        if partition.leader == NONE:
            return []
        return [broker for broker in self.alive() if broker in partition.replicas and broker != partition.leader]

    def say(self, broker: int, event: Event) -> None:
        """Write a line to a broker's state-change log."""
        each = self.brokers[broker]
        common = {"seq": each.seq, "broker": broker, "inc": f"inc-{broker}-{each.lives}"}
        self.out.event({**common, "session": each.session, "broker_epoch": each.czxid}, event)
        each.seq += 1

    def dump(self) -> None:
        """Write down every replica's log as it is in the end."""
        for partition in self.partitions:
            for broker, replica in partition.replicas.items():
                self.out.dump(
                    ReplicaState(
                        broker=broker,
                        **partition.names,
                        log_start_offset=0,
                        log_end_offset=replica.end,
                        high_watermark=replica.high_watermark,
                        recovery_point=0,
                        leader_epochs=tuple(replica.cache),
                        damage="",
                    )
                )
                dump_transactions(self.out, broker, partition, replica)
                for offset, entry in enumerate(replica.log):
                    if entry.marker:
                        continue
                    self.out.dump(
                        ReplicaRecord(
                            broker=broker,
                            **partition.names,
                            offset=offset,
                            leader_epoch=entry.epoch,
                            timestamp_ms=0,
                            key=entry.key,
                            value=entry.value,
                            digest=f"digest of {entry.value}",
                            producer_id=entry.producer_id,
                            producer_epoch=0 if entry.producer_id != NONE else NONE,
                            sequence=entry.sequence,
                        )
                    )

    def _journal(self, injection: int, step: InjectionStep, broker: int) -> None:
        self.out.tick()
        self.out.journal(
            JournalEntry(time_ns=self.out.now_ns, injection=injection, fault="kill", step=step, targets=(str(broker),))
        )


def _assigned(number: int) -> list[int]:
    """The replicas of a partition, the preferred one first."""
    first = number % len(BROKERS)
    return [*BROKERS[first:], *BROKERS[:first]]
