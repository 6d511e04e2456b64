"""Every protocol guard of the broker, by name, correct by default; a planted bug overrides one of them.

A guard is used at exactly one place in the code, named in its docstring here.
"""

from dataclasses import dataclass, field, fields, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedBug:
    """One mistake that can be built into the broker on purpose."""

    name: str
    rule: str
    """The field of `ProtocolRules` that it turns off."""
    origin: str
    effect: str


def _guard(bug: str, *, origin: str, effect: str) -> bool:
    """Return a guard that is on, and the planted bug that turns it off."""
    return field(default=True, metadata={"name": bug, "origin": origin, "effect": effect})


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolRules:
    """The guards, each with its planted bug. True is Kafka's behaviour."""

    acks_all_waits_for_isr: bool = _guard(
        "acks-all-on-append",
        origin="answers acks=all after the local write, before the ISR has the record",
        effect="acknowledged records are lost when the leader dies",
    )
    """acks=all is answered only when the high watermark has passed the records (`DelayedProduce`)."""
    few_in_sync_append_nothing: bool = _guard(
        "appends-below-min-isr",
        origin="a leader checks min.insync.replicas when it answers acks=all, not before it appends",
        effect="refused records are in the log, and consumers read them",
    )
    """Below min.insync.replicas nothing with acks=all is written (`Partition.append_as_leader`)."""
    high_watermark_waits_for_isr: bool = _guard(
        "high-watermark-without-isr",
        origin="the leader's own log end is its high watermark, whatever the followers have",
        effect="acknowledged and read records are lost when the leader dies",
    )
    """Every member of the ISR has what the leader calls committed (`Partition.advance_high_watermark`)."""
    consumers_read_what_is_committed: bool = _guard(
        "reads-uncommitted",
        origin="consumers read to the leader's log end, past the high watermark (near KAFKA-9835)",
        effect="consumers have read records that no replica has after a failover",
    )
    """A consumer gets no record at or after the high watermark (`DelayedFetch`)."""
    truncate_by_leader_epoch: bool = _guard(
        "no-truncation-by-leader-epoch",
        origin="a follower fetches from its own log end without asking where its epoch ended (before KIP-101)",
        effect="replicas diverge: the same offset holds different records",
    )
    """A new follower drops what the leader's epoch history does not contain before it fetches (KIP-101, KIP-279)."""
    producer_state_outlives_restart: bool = _guard(
        "producer-state-lost",
        origin="a broker that restarts or truncates forgets which batches of idempotent producers its log holds",
        effect="a retry after a failover writes the same records once more",
    )
    """After a restart or a truncation the state of producers is read from the log again (`Log`, KIP-98)."""
    producer_batches_are_remembered: bool = _guard(
        "one-batch-remembered",
        origin="a log remembers the last batch of an idempotent producer only (before KAFKA-5494)",
        effect="a retry of an earlier batch that is in the log is refused, and the producer reports it as lost",
    )
    """A log remembers the last five batches of a producer, as many as may be in flight (`Log`, KAFKA-5494)."""
    old_producer_epochs_are_refused: bool = _guard(
        "zombie-producer",
        origin="a log accepts batches of an older producer epoch (KIP-98 without its fence)",
        effect="a producer that was replaced writes into the transaction of its successor",
    )
    """A producer with an older epoch than the log's is refused (`ProducerStates`, KIP-98)."""
    partitions_are_verified: bool = _guard(
        "no-partition-verification",
        origin="a leader begins a transaction without verifying it with the coordinator (before KIP-890)",
        effect="a late batch opens a transaction that never ends, and read_committed consumers stop",
    )
    """The coordinator is asked before the first batch of a transaction (`TransactionVerifier`, KIP-890)."""
    late_verifications_count_for_nothing: bool = _guard(
        "late-verification",
        origin="a verification is used although a marker was written after its request (KIP-890 in part)",
        effect="a late batch of an ended transaction opens one that never ends",
    )
    """A verification counts only for its own transaction (`ProducerHistory`, KIP-890)."""
    markers_are_fenced: bool = _guard(
        "markers-of-old-coordinators",
        origin="a leader writes a marker of a coordinator that was replaced (KIP-98 without coordinator epochs)",
        effect="a transaction is committed on some partitions and aborted on others, or a later one ends too early",
    )
    """A marker of an older coordinator epoch than the last one's is refused (`ProducerStates.check_marker`)."""
    ended_transactions_wait_for_replicas: bool = _guard(
        "markers-decide-at-once",
        origin="a transaction counts as decided when its marker is in the leader's log",
        effect="consumers read records as committed whose transaction is open on the next leader",
    )
    """A transaction is decided when its marker is committed (`ProducerStates.first_unstable_offset`)."""
    open_transactions_do_not_expire: bool = _guard(
        "open-transaction-forgotten",
        origin="a producer is forgotten after producer.id.expiration.ms although its transaction is open",
        effect="its marker ends no transaction, and read_committed consumers stop",
    )
    """A producer with an open transaction does not expire (`ProducerStates.expire`)."""
    markers_keep_producers: bool = _guard(
        "producer-age-by-batches",
        origin="the age of a producer is that of its last batch, whatever markers came after it (KAFKA-9144)",
        effect="a producer is forgotten at once, and a replaced producer or coordinator writes for it again",
    )
    """A marker counts as a write of its producer (`ProducerStates._written_ms`, KAFKA-9144)."""
    read_committed_stops_at_open_transactions: bool = _guard(
        "reads-open-transactions",
        origin="read_committed consumers read up to the high watermark",
        effect="read_committed consumers read records that are aborted later",
    )
    """Consumers that read committed get no record at or after the last stable offset (`DelayedFetch`)."""
    aborted_transactions_are_told: bool = _guard(
        "aborted-not-told",
        origin="Fetch responses list no aborted transactions",
        effect="read_committed consumers deliver aborted records",
    )
    """Fetch names the aborted transactions in its answer (`DelayedFetch`)."""
    markers_outlive_their_records: bool = _guard(
        "markers-cleaned-early",
        origin="compaction removes a marker after delete.retention.ms although records of its transaction stay",
        effect="records of an ended transaction look open, and read_committed consumers stop",
    )
    """A marker stays as long as a batch of its transaction (`CleanedTransactions`, KIP-534)."""
    cleaning_stops_at_open_transactions: bool = _guard(
        "cleans-open-transactions",
        origin="compaction cleans up to the high watermark, open transactions included",
        effect="a record that is aborted later has replaced a committed one, which is lost",
    )
    """Nothing at or after the last stable offset is cleaned (`LogCleaner`)."""
    transaction_index_is_rebuilt: bool = _guard(
        "aborted-forgotten-at-recovery",
        origin="recovery drops the index of aborted transactions and does not rebuild it",
        effect="after a crash read_committed consumers deliver aborted records",
    )
    """Recovery rebuilds the index of aborted transactions of the segments that it reads (`ProducerHistory.load`)."""
    disk_failure_takes_replicas_offline: bool = _guard(
        "leads-on-without-disk",
        origin="a leader whose disk is full or broken answers errors and keeps the lead (before KIP-112 it died)",
        effect="partitions cannot be written although other replicas could lead them",
    )
    """A broker whose disk fails takes its replicas offline and reports it (`DirectoryFailures`, KIP-112)."""
    truncation_asks_the_leader: bool = _guard(
        "truncate-to-high-watermark",
        origin="a new follower truncates to its own high watermark, as before KIP-101 (KAFKA-1211)",
        effect="a follower drops a committed record and leads before it has fetched it again: the record is lost",
    )
    """The leader's epochs decide how far a new follower truncates (`LeaderFetcher._truncate`, KIP-101)."""
    truncation_compares_epochs: bool = _guard(
        "truncation-in-one-round",
        origin="a follower truncates to the offset in the answer, whatever epoch the answer names (before KIP-279)",
        effect="replicas diverge after two quick changes of leader",
    )
    """A follower without the answered epoch goes back further (`LeaderFetcher._answered`, KIP-279)."""
    truncation_follows_every_epoch: bool = _guard(
        "no-truncation-with-same-leader",
        origin="a follower does not truncate when a new epoch has the same leader (KAFKA-7164)",
        effect="replicas diverge if another broker led in between",
    )
    """A follower truncates in each new leader epoch, under any leader (`ControlRequests._make_followers`,
    KAFKA-7164)."""
    high_watermarks_are_kept: bool = _guard(
        "high-watermarks-forgotten",
        origin="the checkpoint holds only partitions that the broker hosts since its start (KAFKA-1647)",
        effect="after two restarts high watermarks are 0: consumers wait, and committed records may be truncated",
    )
    """The checkpoint keeps high watermarks of partitions that are not hosted yet (`Replicas.high_watermarks`,
    KAFKA-1647)."""
    isr_joins_from_epoch_start: bool = _guard(
        "isr-join-without-epoch-start",
        origin="a follower joins the ISR as soon as it reaches the high watermark (KAFKA-7128)",
        effect="the follower lacks records that the earlier leader committed; when it leads, they are lost",
    )
    """A replica that joins the ISR has all that the leader had at its epoch's start (`Partition.wants_to_join`)."""
    isr_counts_once_accepted: bool = _guard(
        "isr-before-zookeeper",
        origin="a leader shrinks its ISR before ZooKeeper has accepted that",
        effect="a leader that was replaced commits records on its own; they are lost",
    )
    """A new ISR counts only once ZooKeeper has accepted it (`IsrKeeper._write`)."""
    isr_write_compares_versions: bool = _guard(
        "isr-write-without-version",
        origin="a leader writes its ISR without comparing ZooKeeper's version",
        effect="a leader that was replaced overwrites its successor in ZooKeeper, with an old epoch",
    )
    """A leader replaces only the partition state that it knows (`IsrKeeper._write`)."""
    high_watermark_waits_for_joining: bool = _guard(
        "high-watermark-ignores-joining",
        origin="only members of the ISR hold the high watermark back, not caught-up replicas about to join",
        effect="a follower never catches up under load: the ISR stays small",
    )
    """A follower about to join the ISR must have it too (`Partition.advance_high_watermark`)."""
    leader_epoch_fences: bool = _guard(
        "no-leader-epoch-fence",
        origin="the leader epoch in a fetch request is ignored (before KIP-320)",
        effect="followers and consumers keep reading from a leader of another epoch",
    )
    """A replica in another leader epoch is refused (`Partition.check_leads`, KIP-320)."""
    epoch_questions_are_fenced: bool = _guard(
        "epoch-answers-unfenced",
        origin="a leader says where an epoch ends without checking the epoch of the replica that asks (before KIP-320)",
        effect="a follower that is still in the old leader epoch truncates by an answer of the new one",
    )
    """A replica in another leader epoch is not told where one ends (`DataHandlers._epoch_end`, KIP-320)."""
    recovery_checks_batches: bool = _guard(
        "no-crc-recovery",
        origin="after a crash a log is loaded whole, without a check of its batches",
        effect="batches that a power loss has torn are served and replicated",
    )
    """After a crash every batch that may be torn is checked against its CRC (`recovery.open_log`)."""
    clean_marker_counts_once: bool = _guard(
        "clean-marker-kept",
        origin="a broker leaves the marker of a clean stop in place when it has started (near KAFKA-10471)",
        effect="after a crash its logs are not recovered: torn batches are served and replicated",
    )
    """The marker of a clean stop is removed at the next start (`LogManager.load`)."""
    recovery_points_are_synced: bool = _guard(
        "unsynced-recovery-point",
        origin="the checkpoint of recovery points holds log ends instead of synced offsets",
        effect="after a power loss recovery skips unsynced batches, and a log ends before its recovery point",
    )
    """The recovery point of a log is at most what is synced (`LogManager._recovery_points`)."""
    log_starts_are_kept: bool = _guard(
        "log-start-forgotten",
        origin="at a start a log begins where its first segment begins (before KIP-107)",
        effect="after a clean restart consumers read deleted records again",
    )
    """A start takes up where the logs started (`LogManager.load`, KIP-107)."""
    retention_asks_the_youngest: bool = _guard(
        "retention-by-first-record",
        origin="a segment's age is that of its first batch, not of its youngest record (near KIP-33)",
        effect="records are deleted before retention.ms has passed",
    )
    """A segment is as old as its youngest record (`retention._is_too_old`, KIP-33)."""
    retention_spares_uncommitted: bool = _guard(
        "retention-past-high-watermark",
        origin="retention deletes segments whose records are not committed yet",
        effect="a leader deletes records that its followers have not copied, and their logs begin anew after them",
    )
    """Retention deletes what is below the high watermark only (`retention.delete_old_segments`)."""
    cleaning_spares_uncommitted: bool = _guard(
        "cleans-uncommitted",
        origin="compaction cleans every segment but the last, committed or not",
        effect="a record that is truncated later has replaced a committed one, which is lost",
    )
    """Nothing at or after the high watermark is cleaned (`LogCleaner`)."""
    latest_waits_for_epoch_start: bool = _guard(
        "latest-goes-back",
        origin="a new leader answers the latest offset before it knows what is committed (before KIP-207)",
        effect="the latest offset decreases at a failover, and consumers reset to an offset that they had passed",
    )
    """A leader tells the latest offset once its high watermark has reached its epoch's start (`find_offset`)."""
    lost_leads_end_waits: bool = _guard(
        "waits-without-lead",
        origin="a waiting acks=all request does not end when its broker loses the lead",
        effect="producers wait for their whole time-out at a failover, or receive success from a follower",
    )
    """A waiting produce request ends when the lead is lost (`PendingAppend.settle`)."""
    controller_writes_are_fenced: bool = _guard(
        "controller-writes-unfenced",
        origin="a controller that was replaced while it was paused keeps writing to ZooKeeper (before KAFKA-6082)",
        effect="two controllers decide about the same partitions",
    )
    """The controller's writes to ZooKeeper succeed only while `/controller_epoch` is its own (`FencedWrites`,
    KAFKA-6082)."""
    unclean_election_needs_permission: bool = _guard(
        "unclean-ignores-config",
        origin="elects a replica outside the ISR although unclean.leader.election.enable is false",
        effect="acknowledged records are lost when the whole ISR is down",
    )
    """A replica outside the ISR leads only where the configuration or a request allows it
    (`Candidates.may_be_unclean`); the log says what is allowed all the same."""
    unclean_leader_is_the_isr: bool = _guard(
        "unclean-keeps-old-isr",
        origin="an unclean election leaves the ISR as it was, so the leader is not in it",
        effect="the leader is outside its ISR; the old members return and lead with other records",
    )
    """A leader elected uncleanly is the whole ISR from then on (`selectors.offline`)."""
    preferred_leader_is_in_isr: bool = _guard(
        "preferred-not-in-isr",
        origin="a preferred election, by the balance too, asks only whether the replica lives (near KAFKA-9866)",
        effect="the new leader lacks committed records, and acknowledged records are lost",
    )
    """The preferred replica leads only as a member of the ISR (`selectors.may_be_preferred`)."""
    last_isr_member_stays: bool = _guard(
        "last-isr-member-dropped",
        origin="the last replica in sync leaves the ISR when it goes down (Kafka 0.8 with unclean election)",
        effect="the ISR is empty, and only an unclean election is possible",
    )
    """The last member of an ISR is not removed from it (`leadership.without_replica`)."""
    controller_resigns_when_replaced: bool = _guard(
        "controller-never-resigns",
        origin="a controller keeps acting after its session has expired or another one was elected",
        effect="an old controller keeps writing and sending requests; only fences and epochs stop them",
    )
    """A controller whose session is over, or that finds another one, stops acting (`Controller._resign`)."""
    registrations_are_of_this_session: bool = _guard(
        "registration-of-old-session",
        origin="a broker finds a registration with its id and takes it for its own (KAFKA-1387, KAFKA-7165)",
        effect="the registration disappears with the old session: the broker runs unregistered",
    )
    """A broker does not adopt a registration that ends with another session (`registration._existing`,
    KAFKA-7165)."""
    bounced_brokers_are_noticed: bool = _guard(
        "bounced-brokers-ignored",
        origin="the controller compares the ids of live brokers, not their epochs (before KIP-380)",
        effect="a broker that restarts before its session ends never learns which partitions it leads",
    )
    """A broker that registered again is handled as one that failed and started (`BrokerEvents.changed`, KIP-380)."""
    failovers_elect: bool = _guard(
        "no-election-at-failover",
        origin="a new controller elects no leaders for partitions whose leader died with the old controller",
        effect="a partition with replicas in sync has no leader until a broker joins or leaves",
    )
    """A new controller elects where the leader does not live (`PartitionMachine.start`)."""
    gone_brokers_are_forgotten: bool = _guard(
        "gone-broker-alive",
        origin="a controller still counts a broker as live after its registration has ended",
        effect="partitions keep dead leaders, and metadata caches send clients to them",
    )
    """A broker whose registration has ended is not alive (`BrokerEvents._failed`)."""
    leaving_ends_with_registration: bool = _guard(
        "shutting-down-for-ever",
        origin="a controller still counts a broker as shutting down after it has returned",
        effect="the broker is never elected again under that controller",
    )
    """A broker that registers again is not shutting down any more (`BrokerEvents._failed`)."""
    followers_take_high_watermarks: bool = _guard(
        "follower-high-watermark-kept",
        origin="a follower does not take over the high watermark that comes with records",
        effect="as a leader it begins with an old high watermark, and consumers wait for the whole ISR",
    )
    """A follower's high watermark follows its leader's (`LeaderFetcher._append`)."""
    changed_isrs_are_published: bool = _guard(
        "changed-isr-unpublished",
        origin="a controller that learns of changed ISRs sends no metadata about them",
        effect="clients and administrators see replicas as in sync that are not",
    )
    """Metadata caches hear of ISRs that leaders have changed (`Notifications.isr_changed`)."""
    old_controllers_are_refused: bool = _guard(
        "no-controller-epoch-check",
        origin="brokers accept requests of a controller that was replaced (near KAFKA-1188)",
        effect="brokers follow two controllers: stale metadata and roles",
    )
    """A broker refuses controllers older than the latest it knows (`ControlRequests._is_of_old_controller`)."""
    fetch_session_epochs_are_checked: bool = _guard(
        "no-fetch-session-epoch",
        origin="a fetch session accepts requests in any order and repeatedly (KIP-227 without its epochs)",
        effect="a client that repeats a fetch after a lost answer never receives the high watermark in that answer",
    )
    """The requests of a fetch session are answered once each and in order (`FetchSessions.begin`, KIP-227)."""
    requests_for_earlier_lives_are_refused: bool = _guard(
        "no-broker-epoch",
        origin="brokers ignore the broker epoch in control requests (before KIP-380, KAFKA-7235)",
        effect="a late request stops or demotes replicas of a broker that has just restarted",
    )
    """A broker refuses requests for its earlier registration (`ControlRequests.is_for_earlier_life`, KIP-380)."""

    old_generations_are_refused: bool = _guard(
        "no-generation-check",
        origin="a coordinator accepts requests of an older generation",
        effect="a member that missed a rebalance overwrites the offsets of the member that replaced it",
    )
    """A member in another generation is refused (`Membership._not_of_this_generation`)."""
    commits_wait_for_assignments: bool = _guard(
        "commits-while-completing",
        origin="commits are accepted while members wait for the assignments of the next generation",
        effect="a member commits in a generation in which it has no assignment yet",
    )
    """Between the last JoinGroup and the leader's assignment no commit is accepted (`Membership.commits`)."""
    instances_are_fenced: bool = _guard(
        "static-member-not-fenced",
        origin="a request with an instance id is accepted whatever its member id (KIP-345 in part)",
        effect="the old process of a static member keeps committing beside the new one",
    )
    """The former member id of an instance is refused (`Membership._acting_as`, KIP-345)."""
    groups_load_to_the_end: bool = _guard(
        "group-load-stops-early",
        origin="a coordinator loads only the first half of its partition of `__consumer_offsets`",
        effect="groups and committed offsets are lost at a failover",
    )
    """A coordinator serves its groups only after reading their log to the end (`GroupCoordinator._load_end`)."""
    groups_load_past_high_watermark: bool = _guard(
        "group-load-to-high-watermark",
        origin="a coordinator loads its partition of `__consumer_offsets` only up to the high watermark",
        effect="offsets committed just before a failover are lost, as the new leader's high watermark lags behind",
    )
    """A load reads past the high watermark of a new leader (`GroupCoordinator._load_end`)."""
    members_outlive_their_coordinator: bool = _guard(
        "member-forgotten-at-failover",
        origin="a coordinator that loads a group leaves its youngest member out",
        effect="a live member is removed, and its partitions are not consumed",
    )
    """A member stays one at the next coordinator (`GroupStore._loaded`)."""
    late_unloads_are_ignored: bool = _guard(
        "late-unload",
        origin="a coordinator unloads groups late, after it has loaded them again (KAFKA-10614)",
        effect="no coordinator serves these groups",
    )
    """An unload is not delayed (`GroupCoordinator`), and one of an older epoch changes nothing (`Shards.unload`)."""
    loads_keep_the_last_position: bool = _guard(
        "first-position-loaded",
        origin="a load keeps the oldest committed offset of a partition instead of the newest (near Kafka 0.9.0)",
        effect="after a failover a member resumes a partition at an old committed offset",
    )
    """The last committed offset of a group in a partition counts (`GroupCoordinator._load`)."""
    first_rebalance_is_bounded: bool = _guard(
        "first-rebalance-put-off",
        origin="an empty group delays its first rebalance as long as members join (KIP-134 without its bound)",
        effect="a group that members keep joining has no first generation, and no partition is consumed",
    )
    """The initial delay is bounded by the rebalance time-out (`Rebalance.join_time_is_over`, KIP-134)."""
    assignments_have_a_deadline: bool = _guard(
        "sync-never-times-out",
        origin="a coordinator waits for the assignment as long as the leader heartbeats (KAFKA-12890)",
        effect="a group whose leader never syncs stays in CompletingRebalance, and no partition is consumed",
    )
    """Members sync within the rebalance time-out (`Rebalance.sync_time_is_over`)."""
    late_syncs_get_assignments: bool = _guard(
        "late-sync-without-assignment",
        origin="a member that asks for its assignment in a stable group gets an empty one (near KAFKA-9801)",
        effect="a static member that returns does not know its partitions, and no member reads them",
    )
    """A stable group answers its members' SyncGroup at any time (`Membership.sync`)."""

    transactional_producers_are_fenced: bool = _guard(
        "no-transactional-fence",
        origin="a coordinator accepts a producer's requests whatever their epoch (before KIP-360 in part)",
        effect="a producer that was replaced continues and ends the transaction of its successor",
    )
    """A transactional producer of another epoch is refused (`Transaction._not_its_producer`)."""
    transitions_exclude_each_other: bool = _guard(
        "transitions-overlap",
        origin="a coordinator begins a transition of a transaction while another one is being stored (KAFKA-5415)",
        effect="a transaction ends twice, or with another outcome than its client received",
    )
    """While one transition is being stored no other one begins (`Transaction._is_busy`)."""
    ended_transactions_stay_ended: bool = _guard(
        "other-outcome-accepted",
        origin="EndTxn of an ended transaction is answered NONE, whatever its outcome",
        effect="a client counts an aborted transaction as committed",
    )
    """EndTxn with the other outcome is refused (`Transaction._ended_before`)."""
    fences_raise_the_epoch: bool = _guard(
        "fence-without-epoch",
        origin="a coordinator aborts a transaction that was replaced or timed out without raising the epoch",
        effect="a paused producer continues without an error after its records were aborted",
    )
    """An abort that the producer did not ask for raises the epoch first (`Transaction.fence`, KIP-588)."""
    markers_follow_the_decision: bool = _guard(
        "markers-before-decision",
        origin="a coordinator sends markers before its decision is stored",
        effect="a coordinator that dies in between leaves some partitions committed, and the next one aborts the rest",
    )
    """Markers are sent when the decision is stored (`TransactionCoordinator._end`)."""
    completion_waits_for_every_marker: bool = _guard(
        "complete-after-one-marker",
        origin="a transaction is complete when one partition has its marker",
        effect="other partitions keep the transaction open for ever, and read_committed consumers wait",
    )
    """A transaction is complete when every partition has its marker (`MarkerDelivery._complete_if_marked`)."""
    decisions_outlive_their_coordinator: bool = _guard(
        "decision-forgotten-at-failover",
        origin="a coordinator that loads a decided transaction does not send its markers",
        effect="the transaction stays undecided on its partitions, and its producer waits for ever",
    )
    """The next coordinator carries out stored decisions (`TransactionCoordinator._load`)."""
    markers_wait_for_metadata: bool = _guard(
        "markers-before-metadata",
        origin="a coordinator takes partitions for deleted before it has heard of any (Apache Kafka 3.9.1)",
        effect="a decided transaction is complete without markers, and read_committed consumers wait for ever",
    )
    """A partition that the metadata cache does not have is deleted if ZooKeeper says so (`MarkerDelivery._route`)."""
    transactions_load_past_high_watermark: bool = _guard(
        "transaction-load-to-high-watermark",
        origin="a coordinator loads its partition of `__transaction_state` only up to the high watermark",
        effect="a decision made just before a failover is lost, and the transaction gets the other outcome",
    )
    """A load reads past the high watermark of a new leader (`TransactionCoordinator._load_end`)."""
    transactional_offsets_wait_for_the_end: bool = _guard(
        "transactional-offsets-at-once",
        origin="offsets that a transaction commits count as soon as they are stored",
        effect="a consumer continues after records whose results were aborted: the results are lost",
    )
    """Offsets of a transaction count when it has committed (`TransactionalCommits._store`)."""
    transactional_commits_are_fenced: bool = _guard(
        "transactional-commit-unfenced",
        origin="offsets that a transaction commits are accepted from any member and generation (before KIP-447)",
        effect="a member that was replaced commits for partitions of another member, and records are processed twice",
    )
    """A transaction commits for members of this generation only (`Membership.commits_in_transaction`, KIP-447)."""
    unstable_offsets_are_withheld: bool = _guard(
        "require-stable-ignored",
        origin="OffsetFetch ignores pending offsets of open transactions (before KIP-447)",
        effect="a member begins before the pending offset of an open transaction, and records are processed twice",
    )
    """With `require_stable` a position that may change is not returned (`GroupHandlers._fetched`, KIP-447)."""

    tombstones_have_one_horizon: bool = _guard(
        "tombstones-for-ever",
        origin="each cleaning gives a tombstone delete.retention.ms anew (KAFKA-8522)",
        effect="tombstones of a topic that is written to are never removed",
    )
    """The first cleaning that comes past a tombstone says when it may go (`Filter._horizon_ms`, KIP-534)."""
    tombstones_wait: bool = _guard(
        "tombstones-removed-early",
        origin="compaction removes a tombstone at once, whatever delete.retention.ms says (near KAFKA-4545)",
        effect="a consumer that reads from the start keeps a key that was deleted",
    )
    """A tombstone stays for delete.retention.ms (`Filter._keeps`)."""
    cleaning_keeps_producers: bool = _guard(
        "producer-cleaned-away",
        origin="compaction removes the last batch of an idempotent producer together with its records",
        effect="a broker that restarts does not know the producer: a retry is refused or written once more",
    )
    """The last batches of a producer stay, even if empty (`Filter._without_records`, KIP-98)."""
    cleaned_batches_have_own_times: bool = _guard(
        "cleaned-batch-keeps-newest-time",
        origin="a cleaned batch keeps the timestamp of a record that was removed from it",
        effect="retention and lookups by timestamp take a segment for younger than it is",
    )
    """A cleaned batch has the newest timestamp of its records (`Filter.apply`)."""
    gaps_are_remembered: bool = _guard(
        "gaps-forgotten",
        origin="a start does not read how far logs were cleaned",
        effect="after a crash recovery takes the gaps of a cleaner for lost records, and drops what follows",
    )
    """A start knows which logs a cleaner has been over (`LogManager.load`)."""

    retention_leaves_enough: bool = _guard(
        "retention-below-bytes",
        origin="retention deletes a segment as soon as the log is larger than retention.bytes",
        effect="a log has less than retention.bytes after a deletion",
    )
    """A log without the segment still has retention.bytes (`retention._TooMuch`)."""
    retention_deletes_last_segments: bool = _guard(
        "last-segment-kept",
        origin="retention never deletes the segment that takes the appends",
        effect="a topic that is not written to any more keeps its records for ever",
    )
    """A last segment whose records are too old is deleted too (`_Retention.delete_while`)."""
    log_start_moves_with_segments: bool = _guard(
        "log-start-behind-segments",
        origin="deleting segments does not move the start of the log",
        effect="the earliest offset is one that no fetch can read",
    )
    """The log starts where its first segment does, or later (`Log.delete_oldest`)."""
    epochs_end_with_records: bool = _guard(
        "epochs-outlive-records",
        origin="the leader epochs of deleted records stay in the cache (KIP-101 without truncateFromStart)",
        effect="followers and consumers are told of epochs of which the log has no record",
    )
    """Epochs that end before the log's start are dropped (`Log.advance_log_start`)."""
    followers_take_log_starts: bool = _guard(
        "follower-log-start-kept",
        origin="a follower does not take over the start of its leader's log (before KIP-107)",
        effect="DeleteRecords waits for ever, and a follower that leads serves deleted records",
    )
    """A follower's log starts where its leader's does (`LeaderFetcher._append`, KIP-107)."""

    epochs_are_checkpointed: bool = _guard(
        "epochs-not-checkpointed",
        origin="a new leader epoch is in the cache only, and in the checkpoint after the next truncation",
        effect="after a restart a log does not know the epochs of its records",
    )
    """A new epoch is in the checkpoint before its first record (`Log.assign_epoch`, KAFKA-7415)."""
    snapshots_have_last_batches: bool = _guard(
        "snapshot-of-oldest-batch",
        origin="a producer snapshot has the oldest batch that is remembered, not the last one",
        effect="after a restart the next batch of a producer is out of order, and a retry is written again",
    )
    """A snapshot has the last batch of each producer (`ProducerStates.in_snapshot`, KIP-98)."""
    snapshots_are_continued: bool = _guard(
        "snapshot-not-continued",
        origin="a start loads the last producer snapshot, and not the batches after it",
        effect="after a restart the next batch of a producer is out of order, and a retry is written again",
    )
    """A start reads the batches after the snapshot (`ProducerHistory.load`, KIP-98)."""
    snapshots_keep_open_transactions: bool = _guard(
        "snapshot-without-transactions",
        origin="a producer snapshot does not restore open transactions",
        effect="after a clean restart read_committed consumers read records that are aborted later",
    )
    """A snapshot restores the open transactions (`ProducerStates.restore`)."""
    log_starts_are_checkpointed: bool = _guard(
        "log-start-not-checkpointed",
        origin="the scheduler alone writes the checkpoint of log starts, and a clean stop does not (KIP-107 in part)",
        effect="after a clean restart consumers read records that were deleted just before",
    )
    """A clean stop writes where logs start (`LogManager._write_recovery_points`, KIP-107)."""
    high_watermarks_come_from_checkpoints: bool = _guard(
        "high-watermark-from-log-end",
        origin="a start takes everything in a log for committed (before replication-offset-checkpoint)",
        effect="records that no other replica has are served, and are lost when another broker leads",
    )
    """A start takes the checkpointed high watermark (`Replicas.host`)."""

    lookups_skip_deleted_records: bool = _guard(
        "lookup-finds-deleted",
        origin="a lookup by timestamp finds records before the start of the log",
        effect="a consumer seeks to an offset that is out of range",
    )
    """A lookup by timestamp begins at the log's start (`Log.offset_for_timestamp`, KIP-107)."""
    lookups_find_records: bool = _guard(
        "lookup-finds-batch",
        origin="a lookup by timestamp finds the batch that has the record, not the record (before KIP-79)",
        effect="a consumer that seeks by time gets older records first",
    )
    """A lookup by timestamp finds the first record that is not older (`Log.offset_for_timestamp`, KIP-79)."""
    deletions_past_the_end_are_refused: bool = _guard(
        "delete-records-past-end",
        origin="DeleteRecords past the high watermark deletes what there is, instead of being refused",
        effect="a client that has the wrong offset deletes a whole partition",
    )
    """DeleteRecords past the high watermark is refused (`Partition.delete_records`, KIP-107)."""
    commits_state_their_retention: bool = _guard(
        "commit-retention-ignored",
        origin="the retention that a commit states is ignored (KIP-211 for old clients too)",
        effect="an offset that was committed for seconds stays for a week",
    )
    """A commit of version 2 to 4 states its retention (`Expiration._is_expired`, KIP-211)."""

    creations_can_be_tried: bool = _guard(
        "tried-topic-created",
        origin="CreateTopics creates a topic that it is only asked to check (validate_only)",
        effect="an administrator that checks a request has a topic afterwards",
    )
    """With validate_only a topic is checked, not created (`TopicCreator.create`, KIP-4)."""
    growth_can_be_tried: bool = _guard(
        "tried-partitions-added",
        origin="CreatePartitions adds partitions that it is only asked to check (validate_only)",
        effect="an administrator that checks a request has moved the keys of a topic",
    )
    """With validate_only partitions are checked, not added (`TopicChanges.add_partitions`, KIP-195)."""
    deletion_waits_for_dead_brokers: bool = _guard(
        "deletion-without-dead-brokers",
        origin="a topic counts as deleted when the replicas on live brokers are",
        effect="a broker that was down keeps the log of a topic that is gone",
    )
    """A topic is deleted when every replica is (`TopicDeletion._is_deleted`)."""
    deletions_are_resumed: bool = _guard(
        "deletion-not-resumed",
        origin="a deletion that waits for a broker is not tried again when that broker is back",
        effect="the topic stays half deleted until the controller changes",
    )
    """A broker's return resumes the deletions that wait for it (`BrokerEvents._started`)."""
    deletion_removes_configs: bool = _guard(
        "deleted-config-kept",
        origin="deleting a topic leaves its configuration in ZooKeeper",
        effect="a topic that is created again inherits properties of the deleted one",
    )
    """A deleted topic leaves no configuration (`TopicDeletion._complete`)."""

    config_changes_can_be_tried: bool = _guard(
        "tried-config-stored",
        origin="a configuration that is only to be checked (validate_only) is stored",
        effect="an administrator that checks a change has made it",
    )
    """With validate_only a configuration is checked, not stored (`ConfigChanges._write`, KIP-133)."""
    replaced_configs_start_empty: bool = _guard(
        "alter-configs-merges",
        origin="AlterConfigs leaves alone what it does not name, as IncrementalAlterConfigs does (KIP-339)",
        effect="a property that an administrator leaves out stays set",
    )
    """AlterConfigs resets what it does not name (`ConfigChanges.replace`, KIP-133)."""
    topics_keep_their_properties: bool = _guard(
        "broker-change-drops-topic-properties",
        origin="a dynamic change of a broker's properties resets those that topics set (KAFKA-9254)",
        effect="retention, compaction and min.insync.replicas of topics fall back to the broker's",
    )
    """A topic's own properties override a broker's new ones (`TopicConfigs._read_broker`, KAFKA-9254)."""
    loaded_logs_take_properties: bool = _guard(
        "loaded-log-without-properties",
        origin="a log that is loaded at the start keeps the broker's properties, not its topic's (near KAFKA-8813)",
        effect="after a restart retention and compaction follow the broker's defaults",
    )
    """A loaded log gets its topic's properties when it is hosted (`LogManager.get_or_create`, KAFKA-8813)."""

    caches_forget_deleted_topics: bool = _guard(
        "deleted-topic-in-metadata",
        origin="a metadata cache keeps partitions whose topic is being deleted",
        effect="clients are sent to leaders of a topic that is gone",
    )
    """Deleted partitions leave the metadata cache (`MetadataCache.update`)."""
    caches_hear_of_started_brokers: bool = _guard(
        "started-broker-not-published",
        origin="brokers are not told when another one has started",
        effect="clients do not learn of a live broker until something else changes",
    )
    """Brokers hear of a broker that has started (`BrokerEvents._started`)."""
    started_brokers_get_all_partitions: bool = _guard(
        "metadata-of-started-broker-empty",
        origin="a started broker hears of changes only, not of all partitions",
        effect="the broker answers that topics do not exist",
    )
    """A started broker gets the state of every partition (`BrokerEvents._started`)."""


PLANTED_BUGS: tuple[PlantedBug, ...] = tuple(
    PlantedBug(rule=guard.name, **guard.metadata) for guard in fields(ProtocolRules)
)

RIGHT = ProtocolRules()
"""Without any planted bug."""


def rules_with(planted_bugs: list[str]) -> ProtocolRules:
    """Return the rules with the named bugs planted.

    Raises:
        ValueError: a name is unknown; the message lists the known ones.
    """
    by_name = {bug.name: bug.rule for bug in PLANTED_BUGS}
    unknown = sorted(set(planted_bugs) - by_name.keys())
    if unknown:
        raise ValueError(f"unknown planted bug {', '.join(unknown)}; known: {', '.join(sorted(by_name))}")
    rules = ProtocolRules()
    assert all(getattr(rules, field.name) for field in fields(rules)), "every guard must be right by default"
    return replace(rules, **{by_name[name]: False for name in planted_bugs})
