package main

import (
	"bufio"
	"context"
	"errors"
	"os"
	"strconv"
	"time"

	"github.com/IBM/sarama"
)

// transactional returns a producer with a transactional id.
func transactional(servers []string, id string, timeout time.Duration) sarama.SyncProducer {
	config := configuration()
	config.Producer.Transaction.ID = id
	config.Producer.Transaction.Timeout = timeout
	producer, err := sarama.NewSyncProducer(servers, config)
	check(err)
	return producer
}

// write begins a transaction and writes the values from..to-1 in turn to three partitions.
func write(producer sarama.SyncProducer, topic string, from, to int) error {
	if err := producer.BeginTxn(); err != nil {
		return err
	}
	messages := make([]*sarama.ProducerMessage, 0, to-from)
	for value := from; value < to; value++ {
		messages = append(messages, &sarama.ProducerMessage{
			Topic: topic, Partition: int32(value % 3), Value: sarama.StringEncoder(strconv.Itoa(value)),
		})
	}
	return producer.SendMessages(messages)
}

// name returns what the broker answered, or what the client says of itself.
func name(err error) string {
	var answered sarama.KError
	if errors.As(err, &answered) {
		return answered.Error()
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// session commits, aborts and commits again.
func session(servers []string, topic, id string) {
	producer := transactional(servers, id, time.Minute)
	defer producer.Close()
	for number, end := range []func() error{producer.CommitTxn, producer.AbortTxn, producer.CommitTxn} {
		check(write(producer, topic, 10*number, 10*number+10))
		check(end())
	}
	show(object{"error": ""})
}

// fence has a second producer take over the id of the first, which then tries to commit.
func fence(servers []string, topic, id string) {
	first := transactional(servers, id, time.Minute)
	check(write(first, topic, 0, 10))
	second := transactional(servers, id, time.Minute)
	check(write(second, topic, 10, 20))
	check(second.CommitTxn())
	show(object{"error": name(first.CommitTxn())})
}

// late commits a transaction that the coordinator has aborted, once a line comes in.
func late(servers []string, topic, id string) {
	producer := transactional(servers, id, time.Second)
	check(write(producer, topic, 0, 10))
	show(object{"written": true})
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	show(object{"error": name(producer.CommitTxn())})
}

// copier copies the records that it is assigned, a transaction of up to 20 at a time.
type copier struct {
	producer sarama.SyncProducer
	to       string
	group    string
}

func (*copier) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*copier) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (copier *copier) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		var batch []*sarama.ConsumerMessage
		select {
		case <-session.Context().Done():
			return nil
		case message, ok := <-claim.Messages():
			if !ok {
				return nil
			}
			batch = append(batch, message)
		}
		for more := true; more && len(batch) < 20; {
			select {
			case message, ok := <-claim.Messages():
				if more = ok; ok {
					batch = append(batch, message)
				}
			default:
				more = false
			}
		}
		if err := copier.copyBatch(session, batch); err != nil {
			show(object{"failed": name(err)})
			return err
		}
		show(object{"copied": len(batch)})
	}
}

func (copier *copier) copyBatch(session sarama.ConsumerGroupSession, batch []*sarama.ConsumerMessage) error {
	producing.Lock()
	defer producing.Unlock()
	if err := session.Context().Err(); err != nil {
		return err
	}
	if err := copier.producer.BeginTxn(); err != nil {
		return err
	}
	messages := make([]*sarama.ProducerMessage, 0, len(batch))
	for _, each := range batch {
		messages = append(messages, &sarama.ProducerMessage{
			Topic: copier.to, Partition: each.Partition, Value: sarama.ByteEncoder(each.Value),
		})
	}
	err := copier.producer.SendMessages(messages)
	if err == nil {
		last := batch[len(batch)-1]
		members := sarama.NewConsumerGroupMetadataFromSession(session, copier.group, nil)
		err = copier.producer.AddMessageToTxnWithGroupMetadata(last, members, nil)
	}
	if err == nil {
		err = copier.producer.CommitTxn()
	}
	for err != nil {
		failed := err
		switch {
		case copier.producer.TxnStatus()&sarama.ProducerTxnFlagFatalError != 0:
			check(failed)
		case copier.producer.TxnStatus()&sarama.ProducerTxnFlagAbortableError != 0:
			if err = copier.producer.AbortTxn(); err == nil {
				return failed
			}
		default:
			if err = copier.producer.CommitTxn(); err == nil {
				return nil
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil
}

// copyRecords copies what is committed in one topic to another, in transactions that have the offsets, until ctx ends.
func copyRecords(ctx context.Context, servers []string, from, to, group, id string) {
	config := configuration()
	config.Consumer.IsolationLevel = sarama.ReadCommitted
	consumer, err := sarama.NewConsumerGroup(servers, group, config)
	check(err)
	go func() {
		for range consumer.Errors() {
		}
	}()
	producer := transactional(servers, id, 30*time.Second)
	for ctx.Err() == nil {
		if err := consumer.Consume(ctx, []string{from}, &copier{producer, to, group}); err != nil {
			show(object{"failed": name(err)})
			time.Sleep(100 * time.Millisecond) // a dead coordinator refuses at once, again and again
		}
	}
	check(consumer.Close())
}
