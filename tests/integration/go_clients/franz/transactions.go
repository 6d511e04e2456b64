package main

import (
	"bufio"
	"context"
	"errors"
	"os"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// transactional returns a producer with a transactional id.
func transactional(servers, id string, timeout time.Duration) *kgo.Client {
	return client(
		servers, kgo.TransactionalID(id), kgo.TransactionTimeout(timeout), kgo.RecordPartitioner(kgo.ManualPartitioner()),
	)
}

// write begins a transaction and writes the values from..to-1 in turn to three partitions.
func write(ctx context.Context, producer *kgo.Client, topic string, from, to int) error {
	if err := producer.BeginTransaction(); err != nil {
		return err
	}
	records := make([]*kgo.Record, 0, to-from)
	for value := from; value < to; value++ {
		records = append(records, &kgo.Record{
			Topic: topic, Partition: int32(value % 3), Value: []byte(strconv.Itoa(value)),
		})
	}
	return producer.ProduceSync(ctx, records...).FirstErr()
}

// name returns what the broker answered, or what the client says of itself.
func name(err error) string {
	var answered *kerr.Error
	if errors.As(err, &answered) {
		return answered.Message
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// session commits, aborts and commits again.
func session(ctx context.Context, servers, topic, id string) {
	producer := transactional(servers, id, time.Minute)
	defer producer.Close()
	for number, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort, kgo.TryCommit} {
		check(write(ctx, producer, topic, 10*number, 10*number+10))
		check(producer.EndTransaction(ctx, end))
	}
	show(object{"error": ""})
}

// fence has a second producer take over the id of the first, which then tries to commit.
func fence(ctx context.Context, servers, topic, id string) {
	first, second := transactional(servers, id, time.Minute), transactional(servers, id, time.Minute)
	defer first.Close()
	defer second.Close()
	check(write(ctx, first, topic, 0, 10))
	check(write(ctx, second, topic, 10, 20))
	check(second.EndTransaction(ctx, kgo.TryCommit))
	show(object{"error": name(first.EndTransaction(ctx, kgo.TryCommit))})
}

// late commits a transaction that the coordinator has aborted, once a line comes in.
func late(ctx context.Context, servers, topic, id string) {
	producer := transactional(servers, id, time.Second)
	defer producer.Close()
	check(write(ctx, producer, topic, 0, 10))
	show(object{"written": true})
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	show(object{"error": name(producer.EndTransaction(ctx, kgo.TryCommit))})
}

// copyRecords copies what is committed in one topic to another, in transactions that have the offsets, until ctx ends.
func copyRecords(ctx context.Context, servers, from, to, group, id string) {
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(splitServers(servers)...), kgo.TransactionalID(id), kgo.TransactionTimeout(30*time.Second),
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(from), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RequireStableFetchOffsets(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.SessionTimeout(6*time.Second),
	)
	check(err)
	defer session.Close()
	for ctx.Err() == nil {
		fetches := session.PollRecords(ctx, 20)
		if fetches.NumRecords() == 0 {
			continue
		}
		check(session.Begin())
		copied := 0
		fetches.EachRecord(func(record *kgo.Record) {
			copied++
			session.Produce(ctx, &kgo.Record{Topic: to, Partition: record.Partition, Value: record.Value}, nil)
		})
		committed, err := session.End(context.Background(), kgo.TryCommit)
		if err != nil {
			show(object{"failed": name(err)})
		} else if committed {
			show(object{"copied": copied})
		}
	}
}
