"""One broker: its parts, and their order of start and stop.

The order is Kafka's (`KafkaServer.startup` and `shutdown`): it opens its ports before it registers, so that clients can
connect once they see it, but answers no request before everything is there; and it gives up its leads before it stops.
"""

import asyncio
import hashlib
import logging
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from harness.broker.administration.config_changes import ConfigChanges
from harness.broker.administration.config_entries import ConfigView
from harness.broker.administration.controlled_shutdown import ControlledShutdown
from harness.broker.administration.producer_ids import ProducerIds
from harness.broker.administration.topic_changes import TopicChanges
from harness.broker.administration.topic_configs import TopicConfigs
from harness.broker.administration.topic_creation import TopicCreator
from harness.broker.background import every
from harness.broker.cleaner.cleaner import LogCleaner
from harness.broker.configs.config import BrokerConfig, Endpoint
from harness.broker.controller.controller import Controller
from harness.broker.coordinator.coordinator import GroupCoordinator
from harness.broker.coordinator.expiration import Expiration
from harness.broker.coordinator.members import GroupMembers
from harness.broker.coordinator.replicated import ReplicatedTopic
from harness.broker.coordinator.requests import GroupLimits
from harness.broker.coordinator.shards import Shards
from harness.broker.coordinator.store import GroupStore
from harness.broker.coordinator.transactional import TransactionalCommits
from harness.broker.handlers.acls import AclHandlers
from harness.broker.handlers.admin import AdminHandlers
from harness.broker.handlers.apis import APIS, bound
from harness.broker.handlers.configs import ConfigHandlers
from harness.broker.handlers.control import ControlHandlers
from harness.broker.handlers.data import DataHandlers
from harness.broker.handlers.group_admin import GroupAdminHandlers
from harness.broker.handlers.groups import GroupHandlers
from harness.broker.handlers.leadership import LeadershipHandlers
from harness.broker.handlers.log_dirs import LogDirHandlers
from harness.broker.handlers.members import MemberHandlers
from harness.broker.handlers.metadata import MetadataHandlers
from harness.broker.handlers.producer_ids import ProducerIdHandlers
from harness.broker.handlers.topics import TopicHandlers
from harness.broker.handlers.transaction_logs import TransactionLogHandlers
from harness.broker.handlers.transactions import TransactionHandlers
from harness.broker.log.directories import DataDirectory, LogDirectories
from harness.broker.log.directory import LogDirectory
from harness.broker.log.manager import CLEAN_SHUTDOWN_MARKER, LogManager
from harness.broker.log.meta_properties import claim_data_directory
from harness.broker.log.storage import Storage
from harness.broker.metadata_cache import MetadataCache
from harness.broker.metrics.holdings import INTERVAL_S, Ledger
from harness.broker.metrics.metrics import BrokerMetrics, Exporter, metrics_of
from harness.broker.metrics.overdue import Overdue
from harness.broker.replicas.fetch_sessions import FetchSessions
from harness.broker.replicas.housekeeping import Housekeeping, producers_expired_ms
from harness.broker.replicas.offline_directory import DirectoryFailures
from harness.broker.replicas.replica_manager import ReplicaManager
from harness.broker.replicas.replicas import now_s
from harness.broker.rules import rules_with
from harness.broker.state_log import StateLog
from harness.broker.transactions.coordinator import TransactionCoordinator, TransactionLimits
from harness.broker.transactions.markers import MarkerDelivery
from harness.broker.transactions.peers import Peers
from harness.broker.transactions.statistics import transaction_statistics
from harness.broker.transactions.verification import CoordinatorQuestions
from harness.broker.unexpected import failed
from harness.broker.wire.dispatch import Dispatcher
from harness.broker.wire.sentinels import UNKNOWN_BROKER_EPOCH
from harness.broker.wire.transport import Transport
from harness.broker.zookeeper.client import ANY_VERSION, SessionExpired, ZooKeeper, ZooKeeperError
from harness.broker.zookeeper.registration import (
    BrokerIdTaken,
    ensure_persistent_paths,
    read_or_create_cluster_id,
    register_broker,
)
from harness.broker.zookeeper.session import ZooKeeperSession
from harness.broker.zookeeper.topics import is_deleted, read_topic_assignment
from harness.broker.zookeeper.znodes import BrokerRegistration, broker_path, new_uuid
from harness.events import BrokerStart, BrokerStop, EpochAssign, LogsClose, ProducersExpired, Recovery
from harness.values import OFFSETS_TOPIC, TRANSACTIONS_TOPIC

_log = logging.getLogger(__name__)


class Server(Protocol):
    """Receives requests."""

    def bind(self, endpoint: Endpoint) -> int:
        """Open the endpoint's port and return it; raises OSError."""
        ...

    async def serve(self) -> None:
        """Answer requests from now on."""
        ...

    async def stop(self) -> None:
        """Close the ports and drop every connection."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Everything outside the broker that it uses; a simulation brings its own."""

    storages: Mapping[str, Storage]
    """The data directories, by their names."""
    open_session: Callable[[], ZooKeeper]
    transport: Transport
    make_server: Callable[[Dispatcher], Server]
    state_log: StateLog
    wall_ms: Callable[[], int]
    """Milliseconds since 1970; for stored timestamps only."""
    rng: random.Random
    exporter: Exporter | None = None
    """Exports metrics, if configured."""


class Broker:
    """One broker; started once, stopped once."""

    def __init__(self, config: BrokerConfig, outside: Surroundings, *, planted_bugs: Sequence[str] = ()) -> None:
        self.failed = asyncio.Event()
        """Set when the broker cannot continue: it must be stopped."""
        self.config = config
        self._outside = outside
        self._planted_bugs = list(planted_bugs)
        self._state_log = outside.state_log
        self.broker_epoch = UNKNOWN_BROKER_EPOCH
        self._registration: BrokerRegistration | None = None
        self._session = ZooKeeperSession(outside.open_session, self._state_log)
        rules = self._rules = rules_with(self._planted_bugs)
        self.metadata = MetadataCache(rules=rules)
        self._disks = {name: LogDirectory(storage) for name, storage in outside.storages.items()}
        opened = partial(
            LogManager,
            epoch_assigned=self._epoch_assigned,
            rules=rules,
            expired_ms=partial(producers_expired_ms, config, outside.wall_ms),
        )
        self._logs = LogDirectories(
            {name: DataDirectory(disk=disk, logs=opened(disk)) for name, disk in self._disks.items()}
        )
        self.topic_configs = TopicConfigs(config, self._session, rules)
        self.replicas = ReplicaManager(
            config=config,
            logs=self._logs,
            metadata=self.metadata,
            transport=outside.transport,
            zookeeper=lambda: self._session.current,
            state_log=self._state_log,
            rules=rules,
            topic_config=self.topic_configs.of,
            wall_ms=outside.wall_ms,
        )
        self.controller = Controller(
            config=config,
            session=self._session,
            transport=outside.transport,
            state_log=self._state_log,
            wall_ms=outside.wall_ms,
            rules=rules,
        )
        self._disk_failures = [
            DirectoryFailures(
                broker_id=config.broker_id,
                directory=disk,
                take_offline=partial(self.replicas.disk_failed, name),
                zookeeper=lambda: self._session.current,
                state_log=self._state_log,
                rules=rules,
            )
            for name, disk in self._disks.items()
        ]
        self._housekeeping = Housekeeping(
            replicas=self.replicas.replicas, config=config, wall_ms=outside.wall_ms, state_log=self._state_log
        )
        self._cleaner = LogCleaner(
            replicas=self.replicas.replicas, config=config, state_log=self._state_log, wall_ms=outside.wall_ms
        )
        self.producer_ids = ProducerIds(broker_id=config.broker_id, zookeeper=lambda: self._session.current)
        self._creator = TopicCreator(config, self.metadata, self._session, outside.rng)
        self._fetch_sessions = FetchSessions(
            slots=config["max.incremental.fetch.session.cache.slots"], rng=outside.rng, now_s=now_s, rules=rules
        )
        self.coordinator: GroupCoordinator | None = None
        self.transactions: TransactionCoordinator | None = None
        self._questions: CoordinatorQuestions | None = None
        self._server: Server | None = None
        self._checkpointer: asyncio.Task[None] | None = None
        self.ledger: Ledger | None = None
        self._holdings: asyncio.Task[None] | None = None
        self._readvertising: asyncio.Task[None] | None = None
        self._ports: dict[str, int] = {}
        """Opened ports, by listener."""

    async def start(self) -> None:
        """Start every part; requests are answered when this returns.

        Raises:
            ZooKeeperError, StorageError, BrokerIdTaken, OSError: it cannot start; `abandon` undoes what was begun.
        """
        self._emit_start()
        await self._session.start()
        zk = self._session.current
        await ensure_persistent_paths(zk)
        cluster_id = await read_or_create_cluster_id(zk, new_uuid(self._outside.rng))
        for storage in self._outside.storages.values():
            claim_data_directory(storage, broker_id=self.config.broker_id, cluster_id=cluster_id)
        self._load_logs()
        offsets_partitions = await self._partitions_of(zk, OFFSETS_TOPIC, "offsets.topic.num.partitions")
        state_partitions = await self._partitions_of(zk, TRANSACTIONS_TOPIC, "transaction.state.log.num.partitions")
        self.coordinator = self._new_coordinator(offsets_partitions)
        self.transactions = self._new_transactions(state_partitions)
        self._questions = CoordinatorQuestions(
            peers=self._new_peers(), metadata=self.metadata, state_partitions=state_partitions
        )
        self.replicas.verifier.coordinators = self._questions
        transactional = self._transactional_commits(self.coordinator)
        self.replicas.markers.on_offsets_decided(transactional.decided)
        self._server = self._outside.make_server(
            self._dispatcher(cluster_id, (offsets_partitions, state_partitions), transactional)
        )
        self._registration = self._bind(self._server)
        self.topic_configs.on_change(self.replicas.topic_configured)
        self.topic_configs.on_change(self.controller.topic_configured)
        self.topic_configs.on_broker_change(self.replicas.broker_configured)
        self.topic_configs.on_broker_change(self.controller.broker_configured)
        self.topic_configs.on_broker_change(self._readvertise)
        await self.topic_configs.start()
        self.replicas.control.on_leadership_change(self.coordinator.leadership_changed)
        self.replicas.control.on_leadership_change(self.transactions.leadership_changed)
        self.replicas.control.on_deletion(self.coordinator.partitions_deleted)
        self.replicas.control.on_deletion(self.topic_configs.deleted)
        await self.replicas.start()
        await self._register()
        self._session.before_new_session(self.controller.before_new_session)
        self._session.after_new_session(self._renew)
        await self.controller.start()
        for failures in self._disk_failures:
            failures.start()
        self._housekeeping.start()
        # The first line comes before any append: what was loaded agrees with the logs.
        self.ledger = self._new_ledger()
        self._holdings = asyncio.create_task(
            every(INTERVAL_S, self.ledger.write, name="holdings", at_once=True), name="holdings"
        )
        self._cleaner.start()
        self.coordinator.start(expire_every_s=self.config["offsets.retention.check.interval.ms"] / 1000)
        self.transactions.start(
            abort_every_s=self.config["transaction.abort.timed.out.transaction.cleanup.interval.ms"] / 1000,
            expire_every_s=self.config["transaction.remove.expired.transaction.cleanup.interval.ms"] / 1000,
        )
        if self._outside.exporter is not None:
            await self._outside.exporter.start(self.metrics)
        await self._server.serve()
        interval_s = self.config["log.flush.offset.checkpoint.interval.ms"] / 1000
        self._checkpointer = asyncio.create_task(every(interval_s, self._checkpoint_recovery_points, name="checkpoint"))
        _log.info("startup.complete broker=%d broker_epoch=%d", self.config.broker_id, self.broker_epoch)

    async def stop(self) -> None:
        """Hand leaderships over, stop every part, leave clean logs and end the ZooKeeper session."""
        controlled = False
        self.replicas.control.shutting_down = True
        if self.config["controlled.shutdown.enable"]:
            handover = ControlledShutdown(
                config=self.config,
                session=self._session,
                transport=self._outside.transport,
                state_log=self._state_log,
            )
            controlled = await handover.run(self.broker_epoch)
        await self._stop_serving()
        self._state_log.emit(LogsClose())
        try:
            self._logs.close_clean()
        except OSError as error:
            _log.error("shutdown.unclean the logs will be recovered at the next start: %s", error)
        await self.controller.stop()
        await self._session.stop()
        self._state_log.emit(BrokerStop(controlled=controlled))
        _log.info("shutdown.complete controlled=%s", controlled)

    async def abandon(self) -> None:
        """Undo a start that failed half way; the logs may not be clean."""
        await self._stop_serving()
        self._logs.close()
        await self.controller.stop()
        await self._session.stop()

    def metrics(self) -> BrokerMetrics:
        """Return the broker's metrics."""
        transactions = transaction_statistics(self.transactions, self._questions)
        return metrics_of(self.replicas, self.controller, self._cleaner, self.coordinator, transactions)

    # --- starting ---

    def _emit_start(self) -> None:
        properties = "".join(f"{name}={value}\n" for name, value in sorted(self.config.values.items()))
        clean = all(storage.exists(CLEAN_SHUTDOWN_MARKER) for storage in self._outside.storages.values())
        self._state_log.emit(
            BrokerStart(
                config_digest=hashlib.sha256(properties.encode()).hexdigest(),
                clean_marker=clean,
                planted_bugs=self._planted_bugs,
            )
        )
        _log.info("startup.started broker=%d planted_bugs=%s", self.config.broker_id, self._planted_bugs)
        if self.config.ignored_properties:
            _log.info("startup.ignored_properties names=%s", ",".join(self.config.ignored_properties))

    def _load_logs(self) -> None:
        loaded_logs = self._logs.load()
        high_watermarks = self._logs.read_high_watermarks()
        for loaded in loaded_logs:
            self._state_log.emit(
                Recovery(
                    topic=loaded.topic,
                    partition=loaded.partition,
                    clean=loaded.clean,
                    log_start_offset=loaded.log_start_offset,
                    log_end_offset=loaded.log_end_offset,
                    recovery_point=loaded.recovery_point,
                    high_watermark=high_watermarks.get((loaded.topic, loaded.partition), 0),
                    truncated_bytes=loaded.truncated_bytes,
                )
            )
            if loaded.expired_producers:
                self._state_log.emit(
                    ProducersExpired(
                        topic=loaded.topic, partition=loaded.partition, producer_ids=loaded.expired_producers
                    )
                )

    async def _partitions_of(self, zk: ZooKeeper, topic: str, default: str) -> int:
        """Return the number of an internal topic's partitions or, before it exists, the configured one."""
        assignment = await read_topic_assignment(zk, topic)
        return len(assignment.partitions) if assignment else int(self.config[default])

    def _new_peers(self) -> Peers:
        return Peers(
            transport=self._outside.transport,
            metadata=self.metadata,
            listener=self.config.peer_listener,
            client_id=f"broker-{self.config.broker_id}",
            timeout_s=self.config["request.timeout.ms"] / 1000,
        )

    def _new_ledger(self) -> Ledger:
        assert self.coordinator is not None
        assert self.transactions is not None
        return Ledger(
            replicas=self.replicas.replicas,
            fetchers=self.replicas.fetchers,
            sessions=self._fetch_sessions,
            controller=self.controller,
            metadata=self.metadata,
            groups=self.coordinator.store,
            members=self.coordinator.members,
            transactions=self.transactions,
            overdue=Overdue(
                replicas=self.replicas.replicas,
                transactions=self.transactions,
                wall_ms=self._outside.wall_ms,
                abort_every_s=self.config["transaction.abort.timed.out.transaction.cleanup.interval.ms"] / 1000,
            ),
            state_log=self._state_log,
        )

    def _new_transactions(self, partitions: int) -> TransactionCoordinator:
        config = self.config
        return TransactionCoordinator(
            shards=Shards(partitions, self._rules),
            topic=ReplicatedTopic(
                topic=TRANSACTIONS_TOPIC,
                replicas=self.replicas.replicas,
                appender=self.replicas.appender,
                timeout_s=config["request.timeout.ms"] / 1000,
            ),
            producer_ids=self.producer_ids,
            markers=MarkerDelivery(
                peers=self._new_peers(),
                metadata=self.metadata,
                state_log=self._state_log,
                deleted=lambda partition: is_deleted(self._session.current, partition),
                rules=self._rules,
            ),
            state_log=self._state_log,
            wall_ms=self._outside.wall_ms,
            limits=TransactionLimits(
                max_timeout_ms=config["transaction.max.timeout.ms"],
                id_expiration_ms=config["transactional.id.expiration.ms"],
                max_batch_bytes=config["message.max.bytes"],
            ),
        )

    def _new_coordinator(self, partitions: int) -> GroupCoordinator:
        config, wall_ms = self.config, self._outside.wall_ms
        limits = GroupLimits(
            initial_rebalance_delay_ms=config["group.initial.rebalance.delay.ms"],
            min_session_timeout_ms=config["group.min.session.timeout.ms"],
            max_session_timeout_ms=config["group.max.session.timeout.ms"],
            max_size=config["group.max.size"],
        )
        store = GroupStore(partitions=partitions, limits=limits, rules=self._rules)
        topic = ReplicatedTopic(
            topic=OFFSETS_TOPIC,
            replicas=self.replicas.replicas,
            appender=self.replicas.appender,
            timeout_s=config["offsets.commit.timeout.ms"] / 1000,
        )
        members = GroupMembers(
            store=store, topic=topic, state_log=self._state_log, wall_ms=wall_ms, rng=self._outside.rng
        )
        return GroupCoordinator(
            store=store,
            topic=topic,
            members=members,
            expiration=Expiration(
                store=store,
                topic=topic,
                members=members,
                wall_ms=wall_ms,
                retention_ms=config["offsets.retention.minutes"] * 60_000,
            ),
            state_log=self._state_log,
            wall_ms=wall_ms,
            max_metadata_bytes=config["offset.metadata.max.bytes"],
        )

    def _bind(self, server: Server) -> BrokerRegistration:
        """Open the ports and return the registration with them."""
        self._ports = {endpoint.name: server.bind(endpoint) for endpoint in self.config.endpoints}
        return BrokerRegistration(
            broker_id=self.config.broker_id,
            endpoints=self._reached_at(self.config),
            rack=self.config["broker.rack"],
            timestamp_ms=self._outside.wall_ms(),
        )

    def _reached_at(self, config: BrokerConfig) -> tuple[Endpoint, ...]:
        advertised = config.advertised_endpoints
        return tuple(replace(endpoint, port=endpoint.port or self._ports[endpoint.name]) for endpoint in advertised)

    def _transactional_commits(self, coordinator: GroupCoordinator) -> TransactionalCommits:
        return TransactionalCommits(
            store=coordinator.store,
            topic=coordinator.topic,
            members=coordinator.members,
            verifier=self.replicas.verifier,
            state_log=self._state_log,
            wall_ms=self._outside.wall_ms,
            max_metadata_bytes=coordinator.max_metadata_bytes,
        )

    def _dispatcher(
        self, cluster_id: str, partitions: tuple[int, int], transactional: TransactionalCommits
    ) -> Dispatcher:
        """Return the dispatcher of APIs; `partitions` are those of `__consumer_offsets` and `__transaction_state`."""
        coordinator, transactions = self.coordinator, self.transactions
        assert coordinator is not None
        assert transactions is not None
        replicas, metadata, creator = self.replicas.replicas, self.metadata, self._creator
        leadership = LeadershipHandlers(self.controller, metadata)
        handlers = bound(
            DataHandlers(
                replicas=replicas,
                appender=self.replicas.appender,
                verifier=self.replicas.verifier,
                fetch_server=self.replicas.fetch_server,
                sessions=self._fetch_sessions,
                config=self.config,
                state_log=self._state_log,
            ),
            ControlHandlers(
                control=self.replicas.control,
                broker_epoch=lambda: self.broker_epoch,
                begin_checkpoints=self.replicas.begin_checkpoints,
                load_topic_configs=self._load_topic_configs,
                metadata_listeners=(creator.metadata_changed, leadership.metadata_changed),
            ),
            MetadataHandlers(self.config, cluster_id, metadata, creator, *partitions),
            AdminHandlers(
                self.controller,
                creator,
                lambda own: ConfigView(config=self.config, layers=self.topic_configs.layers).topic(own),
            ),
            TopicHandlers(self.config, self.controller, TopicChanges(metadata, self._session), creator),
            leadership,
            ConfigHandlers(ConfigChanges(self.config, metadata, self.topic_configs, self._session)),
            GroupHandlers(coordinator, transactional, metadata),
            MemberHandlers(coordinator.members),
            GroupAdminHandlers(coordinator.store, coordinator.expiration, metadata),
            ProducerIdHandlers(self.producer_ids, transactions),
            LogDirHandlers(replicas, self.replicas.deleter, self.replicas.mover),
            AclHandlers(),
            TransactionLogHandlers(replicas, self.replicas.markers),
            TransactionHandlers(transactions, metadata, partitions[0]),
        )
        exporter = self._outside.exporter
        return Dispatcher(APIS, handlers, None if exporter is None else exporter.answered)

    async def _load_topic_configs(self, topics: Iterable[str]) -> None:
        hosted = {partition.key[0] for partition in self.replicas.replicas.all()}
        await self.topic_configs.load(topics, hosted=hosted)

    # --- the session ---

    async def _register(self) -> None:
        """Write this broker's registration in the session in force."""
        assert self._registration is not None
        self.broker_epoch = await register_broker(
            self._session.current,
            self._registration,
            previous_session_id=self._session.previous_session_id,
            state_log=self._state_log,
            rules=self._rules,
        )

    async def _renew(self) -> None:
        """Register again in a new session, then let the controller run for election."""
        try:
            await self._register()
        except SessionExpired:
            _log.warning("session.expired again before the broker was registered")
        except BrokerIdTaken as error:
            _log.error("session.failed another broker has taken this id: %s", error)
            self.failed.set()
        except Exception as error:  # noqa: BLE001  logged; a broker that is not registered must not go on
            failed(_log, error, "session.failed this broker cannot register again")
            self.failed.set()
        else:
            await self.controller.after_new_session(self.broker_epoch)

    def _readvertise(self, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
        """Register again if `advertised.listeners` has changed while the broker runs."""
        if self._registration is None or before["advertised.listeners"] == now["advertised.listeners"]:
            return
        self._registration = replace(self._registration, endpoints=self._reached_at(BrokerConfig(now)))
        if self.broker_epoch != UNKNOWN_BROKER_EPOCH:
            self._readvertising = asyncio.create_task(self._write_registration(self._registration), name="readvertise")

    async def _write_registration(self, registration: BrokerRegistration) -> None:
        try:
            path = broker_path(registration.broker_id)
            await self._session.current.set(path, registration.encode(), ANY_VERSION)
        except ZooKeeperError as error:  # the next session registers the present addresses
            _log.warning("registration.change failed error=%r", error)
        else:
            _log.info("registration.changed endpoints=%s", registration.endpoints)

    # --- background work ---

    async def _checkpoint_recovery_points(self) -> None:
        try:
            await self._logs.checkpoint_recovery_points()
        except OSError as error:
            _log.error("checkpoint.recovery_points failed error=%s", error)

    def _epoch_assigned(self, topic: str, partition: int, leader_epoch: int, start_offset: int) -> None:
        self._state_log.emit(
            EpochAssign(topic=topic, partition=partition, leader_epoch=leader_epoch, start_offset=start_offset)
        )

    async def _stop_serving(self) -> None:
        if self._outside.exporter is not None:
            await self._outside.exporter.stop()
        if self._server is not None:
            await self._server.stop()
        for task in (self._checkpointer, self._holdings):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        await self.topic_configs.stop()
        await self._housekeeping.stop()
        await self._cleaner.stop()
        for failures in self._disk_failures:
            await failures.stop()
        if self.coordinator is not None:
            await self.coordinator.stop()
        if self.transactions is not None:
            await self.transactions.stop()
        if self._questions is not None:
            await self._questions.stop()
        await self.replicas.stop()
