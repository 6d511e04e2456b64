"""What is asked about transactions and what is answered, told in lines, whatever transport reaches the cluster."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from harness.broker.wire import messages as m
from tools.side_by_side.transaction_batches import batch_line, stored_line, transactional_batch
from tools.side_by_side.transaction_cluster import (
    BEGAN_MS,
    CONCURRENT,
    GROUP,
    LOADING,
    MAX_BYTES,
    NEAR,
    TIMEOUT_MS,
    TIMEOUT_S,
    TRANSACTION,
    Cluster,
    topic_named,
    until,
)


@dataclass(slots=True)
class Producer:
    """How a transactional producer names itself, and what it numbers next in each partition."""

    transactional_id: str
    producer_id: int = -1
    epoch: int = -1
    sequences: dict[int, int] = field(default_factory=dict)

    def of_epoch(self, difference: int) -> "Producer":
        """Return the same producer in another epoch."""
        return Producer(self.transactional_id, self.producer_id, self.epoch + difference)


@dataclass(slots=True)
class Script(Cluster):
    """One situation: what its producers ask, and what was answered."""

    async def set_up(self) -> None:
        """Find both coordinators, and create the topic with two partitions at the transactions' one."""
        self.coordinator = await self.found(self.topic, TRANSACTION)
        self.group_coordinator = await self.found(self.topic, GROUP)
        await self.begin_session(Producer("first"))  # the first producer id takes a while, and is 0
        await self.create(self.topic, near=self.coordinator, far=int(self.coordinator == 0))

    # --- producers ---

    def producer(self, suffix: str = "") -> Producer:
        """Return a producer that has no session yet."""
        return Producer(self.topic + suffix)

    async def init(
        self,
        producer: Producer,
        *,
        timeout_ms: int = TIMEOUT_MS,
        version: int = 4,
        known: tuple[int, int] = (-1, -1),
        quietly: bool = False,
    ) -> int:
        """InitProducerId; the producer has what was answered."""
        request = m.InitProducerIdRequest(
            transactional_id=producer.transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=known[0],
            producer_epoch=known[1],
        )
        answer = await self.ask(self.coordinator, request, version)
        if not quietly:
            of = f" of {self.named(known[0])} epoch {known[1]}" if known != (-1, -1) else ""
            self.say(
                f"init v{version}{of}: {answer.error_code} "
                f"{self.named(answer.producer_id)} epoch {answer.producer_epoch}"
            )
        if answer.error_code == 0:
            producer.producer_id, producer.epoch, producer.sequences = answer.producer_id, answer.producer_epoch, {}
        return int(answer.error_code)

    async def session(self, suffix: str = "", *, timeout_ms: int = TIMEOUT_MS) -> Producer:
        """Return a producer with a session, begun without a word."""
        producer = self.producer(suffix)
        await self.begin_session(producer, timeout_ms=timeout_ms)
        return producer

    async def begin_session(self, producer: Producer, *, timeout_ms: int = TIMEOUT_MS) -> None:
        """Begin a session as soon as the coordinator lets it, without a word."""
        errors: list[int] = []

        async def begun() -> bool:
            errors.append(await self.init(producer, timeout_ms=timeout_ms, quietly=True))
            return errors[-1] not in (CONCURRENT, *LOADING)

        await until(begun)
        if errors[-1]:
            self.say(f"no session: {errors[-1]}")

    async def add(
        self, producer: Producer, *partitions: int, version: int = 3, topic: str | None = None, quietly: bool = False
    ) -> list[int]:
        """AddPartitionsToTxn, as a client sends it."""
        of_topic = m.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
        topics = [of_topic(name=topic or self.topic, partitions=list(partitions))] if partitions else []
        request = m.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=producer.transactional_id,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.epoch,
            v3_and_below_topics=topics,
        )
        answer = await self.ask(self.coordinator, request, version)
        errors = {
            each.partition_index: each.partition_error_code
            for topic_result in answer.results_by_topic_v3_and_below
            for each in topic_result.results_by_partition
        }
        if not quietly:
            self.say(f"add v{version} {list(partitions)} epoch {producer.epoch}: {dict(sorted(errors.items()))}")
        return list(errors.values())

    async def add_batched(self, *asked: tuple[Producer, Sequence[int], bool], version: int = 4) -> None:
        """AddPartitionsToTxn, as a broker sends it: for several transactions, and perhaps only to verify."""
        one = m.AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
        transactions = [
            one(
                transactional_id=producer.transactional_id,
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                verify_only=verify_only,
                topics=[one.AddPartitionsToTxnTopic(name=self.topic, partitions=list(partitions))],
            )
            for producer, partitions, verify_only in asked
        ]
        answer = await self.ask(self.coordinator, m.AddPartitionsToTxnRequest(transactions=transactions), version)
        results = {
            each.transactional_id.removeprefix(self.topic): {
                one.partition_index: one.partition_error_code
                for of_topic in each.topic_results
                for one in sorted(of_topic.results_by_partition, key=lambda one: one.partition_index)
            }
            for each in answer.results_by_transaction
        }
        words = [f"{'verify' if only else 'add'} {list(numbers)}" for _, numbers, only in asked]
        self.say(f"batched v{version} {', '.join(words)}: {answer.error_code} {dict(sorted(results.items()))}")

    async def produce(
        self,
        producer: Producer,
        *values: str,
        partition: int = NEAR,
        sequence: int | None = None,
        version: int = 8,
        transactional_id: str | None = "",
        transactional: bool = True,
        timestamp_ms: int = 1,
        quietly: bool = False,
    ) -> int:
        """Produce, by default with the producer's next sequence and its transactional id."""
        first = producer.sequences.get(partition, 0) if sequence is None else sequence
        batch = transactional_batch(
            values,
            producer=(producer.producer_id, producer.epoch, first),
            timestamp_ms=timestamp_ms,
            transactional=transactional,
        )
        data = m.ProduceRequest.TopicProduceData
        request = m.ProduceRequest(
            transactional_id=producer.transactional_id if transactional_id == "" else transactional_id,
            acks=-1,
            timeout_ms=5000,
            topic_data=[
                data(name=self.topic, partition_data=[data.PartitionProduceData(index=partition, records=batch)])
            ],
        )
        answer = (await self.ask(self.leader(partition), request, version)).responses[0].partition_responses[0]
        if answer.error_code == 0:
            producer.sequences[partition] = first + len(values)
        if not quietly:
            self.say(
                f"produce v{version} {list(values)} to {partition} epoch {producer.epoch} from {first}: "
                f"{answer.error_code} at {answer.base_offset}"
            )
        return int(answer.error_code)

    async def opened(self, *partitions: int, suffix: str = "", timeout_ms: int = TIMEOUT_MS) -> Producer:
        """Return a producer whose transaction is open and has one record in each partition, without a word."""
        producer = await self.session(suffix, timeout_ms=timeout_ms)
        await self.reopened(producer, *(partitions or (NEAR,)))
        return producer

    async def reopened(self, producer: Producer, *partitions: int) -> None:
        """Begin another transaction with one record in each partition, without a word."""
        errors = await self.add(producer, *partitions, quietly=True)
        errors += [
            await self.produce(producer, f"{producer.epoch}-{each}", partition=each, quietly=True)
            for each in partitions
        ]
        if any(errors):
            self.say(f"not opened: {errors}")

    async def end(
        self, producer: Producer, *, commit: bool, version: int = 3, wait: bool = False, quietly: bool = False
    ) -> int:
        """EndTxn; `wait` also waits until the transaction is complete."""
        request = m.EndTxnRequest(
            transactional_id=producer.transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            committed=commit,
        )
        error = int((await self.ask(self.coordinator, request, version)).error_code)
        if not quietly:
            self.say(f"{'commit' if commit else 'abort'} v{version} epoch {producer.epoch}: {error}")
        if wait and error == 0:
            await self.completed(producer)
        return error

    async def completed(self, producer: Producer) -> None:
        """Wait until a transaction is complete."""
        await self.until_state(producer, "CompleteCommit", "CompleteAbort")

    async def until_state(self, producer: Producer, *states: str) -> None:
        """Wait until a transaction is in one of these states."""
        request = m.DescribeTransactionsRequest(transactional_ids=[producer.transactional_id])
        seen: list[str] = []

        async def reached() -> bool:
            seen.append((await self.ask(self.coordinator, request, 0)).transaction_states[0].transaction_state)
            return seen[-1] in states

        try:
            await until(reached)
        except TimeoutError:
            self.say(f"{states}: not within {TIMEOUT_S} s; last seen {seen[-1:]}")

    # --- administrators ---

    async def describe(self, *producers: Producer) -> None:
        """DescribeTransactions."""
        request = m.DescribeTransactionsRequest(transactional_ids=[each.transactional_id for each in producers])
        for each in (await self.ask(self.coordinator, request, 0)).transaction_states:
            partitions = sorted((topic.topic, *sorted(topic.partitions)) for topic in each.topics)
            shown = [(self._topic(name), *numbers) for name, *numbers in partitions]
            self.say(
                f"describe {each.transactional_id.removeprefix(self.topic)!r}: {each.error_code} "
                f"{each.transaction_state or 'no state'} {self.named(each.producer_id)} epoch {each.producer_epoch} "
                f"time-out {each.transaction_timeout_ms} started {each.transaction_start_time_ms > 0} {shown}"
            )

    async def list(self, *states: str, ids: Iterable[int] = (), longer_than_ms: int = -1, version: int = 1) -> None:
        """ListTransactions; only those of this situation are told."""
        request = m.ListTransactionsRequest(
            state_filters=list(states), producer_id_filters=list(ids), duration_filter=longer_than_ms
        )
        answer = await self.ask(self.coordinator, request, version)
        listed = [
            (each.transactional_id.removeprefix(self.topic), self.named(each.producer_id), each.transaction_state)
            for each in sorted(answer.transaction_states, key=lambda each: each.transactional_id)
            if each.transactional_id.startswith(self.topic)
        ]
        asked = f"{list(states)} {[self.named(each) for each in ids]} {longer_than_ms}"
        self.say(f"list v{version} {asked}: {answer.error_code} {answer.unknown_state_filters} {listed}")

    async def producers(self, *partitions: int, topic: str | None = None) -> None:
        """DescribeProducers, at the leader."""
        wanted = m.DescribeProducersRequest.TopicRequest
        for number in partitions or (NEAR,):
            topics = [wanted(name=topic or self.topic, partition_indexes=[number])]
            answer = await self.ask(self.leader(number), m.DescribeProducersRequest(topics=topics), 0)
            each = answer.topics[0].partitions[0]
            known = [
                (
                    self.named(one.producer_id),
                    f"epoch {one.producer_epoch} last {one.last_sequence} open {one.current_txn_start_offset} "
                    f"coordinator {one.coordinator_epoch}",
                )
                for one in sorted(each.active_producers, key=lambda one: one.producer_id)
            ]
            self.say(f"producers of {number}: {each.error_code} {known}")

    async def markers(
        self,
        producer: Producer,
        *partitions: int,
        commit: bool,
        coordinator_epoch: int = 0,
        topic: str | None = None,
        at: int | None = None,
        version: int = 1,
    ) -> None:
        """WriteTxnMarkers, as a coordinator or an administrator sends it."""
        marker = m.WriteTxnMarkersRequest.WritableTxnMarker
        topics = [marker.WritableTxnMarkerTopic(name=topic or self.topic, partition_indexes=list(partitions))]
        request = m.WriteTxnMarkersRequest(
            markers=[
                marker(
                    producer_id=producer.producer_id,
                    producer_epoch=producer.epoch,
                    transaction_result=commit,
                    topics=topics,
                    coordinator_epoch=coordinator_epoch,
                )
            ]
        )
        answer = await self.ask(self.leader(partitions[0]) if at is None else at, request, version)
        errors = {
            one.partition_index: one.error_code
            for each in answer.markers
            for of_topic in each.topics
            for one in of_topic.partitions
        }
        self.say(
            f"{'commit' if commit else 'abort'} marker epoch {producer.epoch} by coordinator epoch "
            f"{coordinator_epoch}: {dict(sorted(errors.items()))}"
        )

    # --- readers ---

    async def read(self, *partitions: int, offset: int = 0, committed: bool = True, max_bytes: int = MAX_BYTES) -> None:
        """Fetch what a consumer of an isolation level gets, without filtering."""
        for number in partitions or (NEAR,):
            answer = await self.fetch(number, offset, committed=committed, max_bytes=max_bytes)
            each = answer.responses[0].partitions[0]
            aborted = sorted((self.named(one.producer_id), one.first_offset) for one in each.aborted_transactions or ())
            level = "committed" if committed else "uncommitted"
            self.say(
                f"read {level} {number} from {offset}: {each.error_code} from {each.log_start_offset} stable "
                f"{each.last_stable_offset} high {each.high_watermark} aborted {aborted}"
            )
            for line in batch_line(bytes(each.records or b""), self.named):
                self.say(f"    {line}")

    async def offsets(self, *timestamps: int, committed: bool, partition: int = NEAR) -> None:
        """ListOffsets for each of these timestamps."""
        of_topic = m.ListOffsetsRequest.ListOffsetsTopic
        found = {}
        for timestamp in timestamps:
            wanted = of_topic.ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
            request = m.ListOffsetsRequest(
                replica_id=-1,
                isolation_level=int(committed),
                topics=[of_topic(name=self.topic, partitions=[wanted])],
            )
            each = (await self.ask(self.leader(partition), request, 5)).topics[0].partitions[0]
            found[timestamp] = (each.error_code, each.offset, "now" if each.timestamp > BEGAN_MS else each.timestamp)
        self.say(f"offsets {'committed' if committed else 'uncommitted'}: {found}")

    async def until_unmarked(self, producer: Producer, partitions: int) -> None:
        """Wait until the coordinator counts so many partitions without a marker: after the markers are written."""
        request = m.DescribeTransactionsRequest(transactional_ids=[producer.transactional_id])

        async def counted() -> bool:
            state = (await self.ask(self.coordinator, request, 0)).transaction_states[0]
            return sum(len(each.partitions) for each in state.topics) == partitions

        await until(counted)

    async def waiting_read(self, partition: int, offset: int) -> None:
        """Read committed records, and wait for them."""
        answer = await self.fetch(partition, offset, committed=True, max_wait_ms=20_000)
        each = answer.responses[0].partitions[0]
        lines = list(batch_line(bytes(each.records or b""), self.named))
        self.say(f"waiting read {partition} from {offset}: {each.error_code} {lines[:1]}")

    async def delete_topic(self, topic: str) -> None:
        """Delete a topic, and wait until the coordinator's broker does not know it any more."""
        controller = (await self.ask(self.coordinator, m.MetadataRequest(topics=[]), 8)).controller_id
        await self.ask(controller, m.DeleteTopicsRequest(topic_names=[topic], timeout_ms=5000), 4)
        request = m.MetadataRequest(topics=[topic_named(topic)])

        async def is_gone() -> bool:
            return bool((await self.ask(self.coordinator, request, 8)).topics[0].error_code)

        await until(is_gone)

    async def delete_records(self, offset: int) -> None:
        """DeleteRecords before an offset."""
        of_topic = m.DeleteRecordsRequest.DeleteRecordsTopic
        wanted = of_topic.DeleteRecordsPartition(partition_index=NEAR, offset=offset)
        request = m.DeleteRecordsRequest(topics=[of_topic(name=self.topic, partitions=[wanted])], timeout_ms=5000)
        each = (await self.ask(self.leader(NEAR), request, 1)).topics[0].partitions[0]
        self.say(f"delete records before {offset}: {each.error_code} low {each.low_watermark}")

    def _topic(self, name: str) -> str:
        return name.replace(self.topic, "T")

    # --- what is stored ---

    async def log(self, *producers: Producer) -> None:
        """Say what `__transaction_state` holds of transactional ids, record by record with its bytes."""
        answer = await self.fetch(0, 0, topic="__transaction_state", at=self.coordinator)
        data = bytes(answer.responses[0].partitions[0].records or b"")
        names = [each.transactional_id for each in producers]
        for line in stored_line(data, names, self.topic, self.named):
            self.say(f"log: {line}")
