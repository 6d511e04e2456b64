"""Which test shows what each property does? One row a property that works, broker's and topics'."""

HERE = "tests/broker/configs"
BROKER, TOPIC, FETCH, CONFIG = (
    f"{HERE}/test_{name}.py" for name in ("broker_effects", "topic_effects", "fetch_effects", "config")
)
TRANSACTIONS = "tests/broker/replicas/test_transactions.py"
END_TO_END = "tests/broker/transactions/test_end_to_end.py"
TOPIC_DEFAULTS = f"{BROKER}::test_num_partitions_and_default_replication_factor_are_those_of_topics_that_do_not_say"
INHERITED = f"{CONFIG}::test_what_a_topic_inherits_is_in_force_for_it"
LIMITS = "tests/broker/wire/test_limits.py::test_the_limits_are_what_the_properties_say"
SHUTDOWN = "tests/broker/administration/test_controlled_shutdown.py"
MAIN = "tests/broker/test_main.py"
CLEANER, CHOOSING, CLEANING, OFFSET_MAP = (
    f"tests/broker/cleaner/test_{name}.py" for name in ("cleaner", "choosing", "cleaning", "offset_map")
)
KEYS = f"{OFFSET_MAP}::test_memory_bounds_the_number_of_keys"

OF_BROKERS: dict[str, str] = {
    "advertised.listeners": f"{BROKER}::test_advertised_listeners_can_be_changed_while_the_broker_runs",
    "auto.create.topics.enable": f"{BROKER}::test_auto_create_topics_enable",
    "auto.leader.rebalance.enable": f"{BROKER}::test_the_balance_of_leads",
    "broker.id": f"{BROKER}::test_broker_id_listeners_and_names_are_what_others_are_told",
    "broker.rack": f"{BROKER}::test_broker_rack_spreads_replicas_over_racks",
    "compression.type": INHERITED,
    "connections.max.idle.ms": LIMITS,
    "controlled.shutdown.enable": f"{BROKER}::test_controlled_shutdown_enable",
    "controlled.shutdown.max.retries": f"{SHUTDOWN}::test_asking_until_nothing_is_led",
    "controlled.shutdown.retry.backoff.ms": f"{SHUTDOWN}::test_each_try_has_its_time_and_the_next_comes_later",
    "controller.socket.timeout.ms": f"{SHUTDOWN}::test_each_try_has_its_time_and_the_next_comes_later",
    "default.replication.factor": (TOPIC_DEFAULTS),
    "delete.topic.enable": "tests/broker/handlers/test_topics.py::test_deletion_that_is_switched_off_is_refused",
    "fetch.max.bytes": f"{FETCH}::test_fetch_max_bytes_is_the_most_that_anybody_gets",
    "group.initial.rebalance.delay.ms": f"{BROKER}::test_group_initial_rebalance_delay_ms",
    "group.max.session.timeout.ms": f"{BROKER}::test_group_session_timeouts_have_bounds",
    "group.max.size": f"{BROKER}::test_group_max_size",
    "group.min.session.timeout.ms": f"{BROKER}::test_group_session_timeouts_have_bounds",
    "inter.broker.listener.name": f"{BROKER}::test_broker_id_listeners_and_names_are_what_others_are_told",
    "leader.imbalance.check.interval.seconds": f"{BROKER}::test_the_balance_of_leads",
    "leader.imbalance.per.broker.percentage": f"{BROKER}::test_the_balance_of_leads",
    "listener.security.protocol.map": f"{CONFIG}::test_a_wrong_property_is_named",
    "listeners": f"{BROKER}::test_broker_id_listeners_and_names_are_what_others_are_told",
    "log.cleaner.backoff.ms": f"{CLEANER}::test_a_cleaner_without_work_looks_again_after_log_cleaner_backoff_ms",
    "log.cleaner.dedupe.buffer.size": KEYS,
    "log.cleaner.delete.retention.ms": INHERITED,
    "log.cleaner.enable": f"{CLEANER}::test_a_cleaner_that_is_turned_off_cleans_nothing",
    "log.cleaner.io.buffer.load.factor": KEYS,
    "log.cleaner.io.buffer.size": f"{CLEANER}::test_a_small_buffer_reads_batch_after_batch",
    "log.cleaner.io.max.bytes.per.second": f"{CLEANER}::test_what_a_cleaner_may_read_a_second_keeps_it_busy_longer",
    "log.cleaner.max.compaction.lag.ms": INHERITED,
    "log.cleaner.min.cleanable.ratio": INHERITED,
    "log.cleaner.min.compaction.lag.ms": INHERITED,
    "log.cleaner.threads": f"{CLEANER}::test_several_cleaners_have_several_logs_at_a_time",
    "log.cleanup.policy": INHERITED,
    "log.dir": f"{MAIN}::test_what_keeps_it_from_starting_is_one_line",
    "log.dirs": "tests/broker/replicas/test_several_directories.py::"
    "test_logs_are_spread_over_the_directories_and_found_again",
    "log.flush.interval.messages": INHERITED,
    "log.flush.interval.ms": INHERITED,
    "log.flush.offset.checkpoint.interval.ms": f"{BROKER}::test_log_flush_offset_checkpoint_interval_ms",
    "log.flush.scheduler.interval.ms": f"{TOPIC}::test_flush_ms_syncs_the_log_when_the_scheduler_looks",
    "log.index.interval.bytes": INHERITED,
    "log.index.size.max.bytes": INHERITED,
    "log.initial.task.delay.ms": f"{BROKER}::test_retention_begins_after_a_delay_and_goes_on_at_intervals",
    "log.message.timestamp.after.max.ms": INHERITED,
    "log.message.timestamp.before.max.ms": INHERITED,
    "log.message.timestamp.difference.max.ms": INHERITED,
    "log.message.timestamp.type": INHERITED,
    "log.retention.bytes": INHERITED,
    "log.retention.check.interval.ms": f"{BROKER}::test_retention_begins_after_a_delay_and_goes_on_at_intervals",
    "log.retention.hours": INHERITED,
    "log.retention.minutes": INHERITED,
    "log.retention.ms": INHERITED,
    "log.roll.hours": INHERITED,
    "log.roll.jitter.hours": INHERITED,
    "log.roll.jitter.ms": INHERITED,
    "log.roll.ms": INHERITED,
    "log.segment.bytes": INHERITED,
    "log.segment.delete.delay.ms": f"{BROKER}::test_log_segment_delete_delay_ms_keeps_a_deleted_log",
    "max.connections": LIMITS,
    "max.connections.per.ip": LIMITS,
    "max.connections.per.ip.overrides": LIMITS,
    "max.incremental.fetch.session.cache.slots": (
        "tests/broker/handlers/test_fetch_sessions.py::test_replicas_become_equal_whatever_sessions_there_are"
    ),
    "message.max.bytes": INHERITED,
    "min.insync.replicas": INHERITED,
    "num.partitions": TOPIC_DEFAULTS,
    "offset.metadata.max.bytes": f"{BROKER}::test_offset_metadata_max_bytes",
    "offsets.commit.timeout.ms": (f"{BROKER}::test_offsets_commit_timeout_ms_is_how_long_a_commit_waits_for_replicas"),
    "offsets.retention.check.interval.ms": f"{BROKER}::test_offsets_retention",
    "offsets.retention.minutes": f"{BROKER}::test_offsets_retention",
    "offsets.topic.num.partitions": f"{BROKER}::test_offsets_topic_properties_are_those_of_the_topic_when_it_is_made",
    "offsets.topic.replication.factor": (
        f"{BROKER}::test_offsets_topic_properties_are_those_of_the_topic_when_it_is_made"
    ),
    "offsets.topic.segment.bytes": f"{BROKER}::test_offsets_topic_properties_are_those_of_the_topic_when_it_is_made",
    "producer.id.expiration.check.interval.ms": f"{BROKER}::test_producers_are_forgotten",
    "producer.id.expiration.ms": f"{BROKER}::test_producers_are_forgotten",
    "prometheus.host": f"{MAIN}::test_metrics_are_served_on_request",
    "prometheus.port": f"{MAIN}::test_metrics_are_served_on_request",
    "queued.max.request.bytes": LIMITS,
    "request.timeout.ms": f"{TRANSACTIONS}::test_request_timeout_ms",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": (
        f"{END_TO_END}::test_a_transaction_that_takes_too_long_is_aborted"
    ),
    "transaction.max.timeout.ms": f"{END_TO_END}::test_transaction_max_timeout_ms",
    "transaction.partition.verification.enable": (f"{TRANSACTIONS}::test_transaction_partition_verification_enable"),
    "transaction.remove.expired.transaction.cleanup.interval.ms": f"{END_TO_END}::test_unused_ids_expire",
    "transaction.state.log.min.isr": f"{END_TO_END}::test_properties_of_the_topic_are_those_of_when_it_is_made",
    "transaction.state.log.num.partitions": f"{END_TO_END}::test_properties_of_the_topic_are_those_of_when_it_is_made",
    "transaction.state.log.replication.factor": (
        f"{END_TO_END}::test_properties_of_the_topic_are_those_of_when_it_is_made"
    ),
    "transaction.state.log.segment.bytes": f"{END_TO_END}::test_properties_of_the_topic_are_those_of_when_it_is_made",
    "transactional.id.expiration.ms": f"{END_TO_END}::test_unused_ids_expire",
    "replica.fetch.backoff.ms": f"{FETCH}::test_replica_fetch_backoff_ms_passes_after_a_failure",
    "replica.fetch.max.bytes": f"{FETCH}::test_followers_ask_for_what_their_properties_say",
    "replica.fetch.min.bytes": f"{FETCH}::test_followers_ask_for_what_their_properties_say",
    "replica.fetch.response.max.bytes": f"{FETCH}::test_followers_ask_for_what_their_properties_say",
    "replica.fetch.wait.max.ms": f"{FETCH}::test_followers_ask_for_what_their_properties_say",
    "replica.high.watermark.checkpoint.interval.ms": (
        "tests/broker/replicas/test_replica_cluster.py::test_a_killed_broker_starts_from_its_checkpoint_and_catches_up"
    ),
    "replica.lag.time.max.ms": f"{FETCH}::test_replica_lag_time_max_ms_is_how_long_a_laggard_counts",
    "replica.socket.timeout.ms": f"{FETCH}::test_replica_socket_timeout_ms_passes_when_the_leader_is_silent",
    "replication.profile": "tests/broker/replicas/test_isr.py::test_an_isr_below_min_insync_replicas",
    "selector.profile": "tests/broker/controller/test_partitions.py::test_the_last_member_of_an_isr_dies",
    "socket.listen.backlog.size": LIMITS,
    "socket.receive.buffer.bytes": LIMITS,
    "socket.request.max.bytes": LIMITS,
    "socket.send.buffer.bytes": LIMITS,
    "unclean.leader.election.enable": INHERITED,
    "zookeeper.connect": f"{MAIN}::test_what_keeps_it_from_starting_is_one_line",
    "zookeeper.connection.timeout.ms": f"{MAIN}::test_what_keeps_it_from_starting_is_one_line",
    "zookeeper.session.timeout.ms": f"{MAIN}::test_zookeeper_is_asked_for_the_session_that_the_properties_want",
}

OF_TOPICS: dict[str, str] = {
    "cleanup.policy": f"{TOPIC}::test_segments_go",
    "compression.type": "tests/broker/handlers/test_data.py::test_what_a_topic_compresses_with_zstd_is_read",
    "delete.retention.ms": f"{CLEANING}::test_a_tombstone_goes_when_it_was_kept_long_enough",
    "file.delete.delay.ms": f"{TOPIC}::test_file_delete_delay_ms_keeps_the_files_of_a_segment_that_is_deleted",
    "flush.messages": f"{TOPIC}::test_flush_messages_syncs_the_log_after_so_many_records",
    "flush.ms": f"{TOPIC}::test_flush_ms_syncs_the_log_when_the_scheduler_looks",
    "index.interval.bytes": f"{TOPIC}::test_a_new_segment_begins",
    "max.compaction.lag.ms": f"{CHOOSING}::test_when_a_log_is_due",
    "max.message.bytes": f"{TOPIC}::test_a_batch_that_is_too_large_is_refused",
    "message.timestamp.after.max.ms": f"{TOPIC}::test_records_of_tomorrow",
    "message.timestamp.before.max.ms": f"{TOPIC}::test_records_of_a_day_ago",
    "message.timestamp.difference.max.ms": f"{TOPIC}::test_records_of_a_day_ago",
    "message.timestamp.type": f"{TOPIC}::test_message_timestamp_type_gives_records_the_brokers_time",
    "min.cleanable.dirty.ratio": (
        f"{CLEANER}::test_a_log_is_cleaned_once_it_is_dirtier_than_its_min_cleanable_dirty_ratio"
    ),
    "min.compaction.lag.ms": f"{CHOOSING}::test_how_far_a_log_may_be_cleaned",
    "min.insync.replicas": (
        "tests/broker/test_server.py::test_a_topics_own_min_insync_replicas_hold_from_its_first_record"
    ),
    "retention.bytes": f"{TOPIC}::test_segments_go",
    "retention.ms": f"{TOPIC}::test_segments_go",
    "segment.bytes": f"{TOPIC}::test_a_new_segment_begins",
    "segment.index.bytes": f"{TOPIC}::test_a_new_segment_begins",
    "segment.jitter.ms": f"{TOPIC}::test_a_new_segment_begins",
    "segment.ms": f"{TOPIC}::test_a_new_segment_begins",
    "unclean.leader.election.enable": "tests/broker/controller/test_partitions.py::"
    "test_unclean_election_is_decided_by_what_zookeeper_says_then",
}
