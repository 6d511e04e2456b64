// Command sarama does with IBM's sarama what the command franz does with franz-go.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

type object = map[string]any

var output, producing sync.Mutex

func show(line any) {
	text, err := json.Marshal(line)
	check(err)
	output.Lock()
	defer output.Unlock()
	fmt.Println(string(text))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	check(err)
	return value
}

// code returns the number of the error that a broker answered, 0 without one; other errors end the program.
func code(err error) int16 {
	var answered sarama.KError
	if err != nil && !errors.As(err, &answered) {
		check(err)
	}
	return int16(answered)
}

func configuration() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.V3_9_0_0
	config.Producer.Return.Successes = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Idempotent = true
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Net.MaxOpenRequests = 1
	config.Consumer.Return.Errors = true
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Group.Session.Timeout = 6 * time.Second
	config.Consumer.Group.Heartbeat.Interval = 500 * time.Millisecond
	return config
}

func produce(servers []string, topic string, partitions, from, to int) {
	producer, err := sarama.NewSyncProducer(servers, configuration())
	check(err)
	defer producer.Close()
	messages := make([]*sarama.ProducerMessage, 0, to-from)
	for value := from; value < to; value++ {
		messages = append(messages, &sarama.ProducerMessage{
			Topic: topic, Partition: int32(value % partitions), Value: sarama.StringEncoder(strconv.Itoa(value)),
		})
	}
	check(producer.SendMessages(messages))
	show(object{"produced": to - from})
}

// claims says what a member has: with a cooperative strategy, one session goes on while that changes.
type claims struct {
	lock     sync.Mutex
	assigned map[int32]bool
}

func (held *claims) change(partition int32, has bool) {
	held.lock.Lock()
	defer held.lock.Unlock()
	if has {
		held.assigned[partition] = true
	} else {
		delete(held.assigned, partition)
	}
	show(object{"assigned": sorted(held.assigned)})
}

func (*claims) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*claims) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (held *claims) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	held.change(claim.Partition(), true)
	defer held.change(claim.Partition(), false)
	for message := range claim.Messages() {
		session.MarkMessage(message, "")
		if message.Offset == claim.HighWaterMarkOffset()-1 {
			session.Commit()
		}
		show(object{"read": map[int32][]string{message.Partition: {string(message.Value)}}})
	}
	return nil
}

func sorted(partitions map[int32]bool) []int32 {
	listed := make([]int32, 0, len(partitions))
	for partition := range partitions {
		listed = append(listed, partition)
	}
	sort.Slice(listed, func(one, other int) bool { return listed[one] < listed[other] })
	return listed
}

func member(ctx context.Context, servers []string, topic, group, strategy string, instance []string) {
	strategies := map[string]sarama.BalanceStrategy{
		"range": sarama.NewBalanceStrategyRange(), "cooperative-sticky": sarama.NewBalanceStrategyCooperativeSticky(),
	}
	config := configuration()
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategies[strategy]}
	for _, id := range instance {
		config.Consumer.Group.InstanceId = id
	}
	consumer, err := sarama.NewConsumerGroup(servers, group, config)
	check(err)
	go func() {
		for err := range consumer.Errors() {
			show(object{"failed": err.Error()})
		}
	}()
	held := &claims{assigned: map[int32]bool{}}
	for ctx.Err() == nil {
		if err := consumer.Consume(ctx, []string{topic}, held); err != nil {
			show(object{"failed": err.Error()})
			time.Sleep(100 * time.Millisecond) // a dead coordinator refuses at once, again and again
		}
	}
	check(consumer.Close())
	show(object{"left": true})
}

func describe(admin sarama.ClusterAdmin, group string) {
	described, err := admin.DescribeConsumerGroups([]string{group})
	check(err)
	this := described[0]
	members := []object{}
	for _, one := range this.Members {
		instance := ""
		if one.GroupInstanceId != nil {
			instance = *one.GroupInstanceId
		}
		partitions := map[int32]bool{}
		assignment, err := one.GetMemberAssignment()
		check(err)
		if assignment != nil {
			for _, each := range assignment.Topics {
				for _, partition := range each {
					partitions[partition] = true
				}
			}
		}
		members = append(members, object{
			"client": one.ClientId, "host": one.ClientHost, "instance": instance, "partitions": sorted(partitions),
		})
	}
	show(object{
		"error": int16(this.Err), "state": this.State, "type": this.ProtocolType, "protocol": this.Protocol, "members": members,
	})
}

func offsets(admin sarama.ClusterAdmin, group string) {
	fetched, err := admin.ListConsumerGroupOffsetsBatch(map[string]map[string][]int32{group: nil})
	check(err)
	committed := map[string]int64{}
	for _, topic := range fetched[group].Blocks {
		for partition, block := range topic {
			committed[strconv.Itoa(int(partition))] = block.Offset
		}
	}
	show(committed)
}

func main() {
	servers, command, arguments := strings.Split(os.Args[1], ","), os.Args[2], os.Args[3:]
	switch command {
	case "produce":
		produce(servers, arguments[0], number(arguments[1]), number(arguments[2]), number(arguments[3]))
		return
	case "session":
		session(servers, arguments[0], arguments[1])
		return
	case "fence":
		fence(servers, arguments[0], arguments[1])
		return
	case "late":
		late(servers, arguments[0], arguments[1])
		return
	case "member", "copy":
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			cancel()
		}()
		if command == "copy" {
			copyRecords(ctx, servers, arguments[0], arguments[1], arguments[2], arguments[3])
		} else {
			member(ctx, servers, arguments[0], arguments[1], arguments[2], arguments[3:])
		}
		return
	}
	admin, err := sarama.NewClusterAdmin(servers, configuration())
	check(err)
	defer admin.Close()
	switch command {
	case "create":
		detail := &sarama.TopicDetail{NumPartitions: int32(number(arguments[1])), ReplicationFactor: int16(number(arguments[2]))}
		show(object{"error": code(admin.CreateTopic(arguments[0], detail, false))})
	case "describe":
		describe(admin, arguments[0])
	case "list":
		listed, err := admin.ListConsumerGroups()
		check(err)
		show(object{"type": listed[arguments[0]]})
	case "offsets":
		offsets(admin, arguments[0])
	case "set-offset":
		partition := int32(number(arguments[2]))
		wanted := sarama.OffsetAndMetadata{Offset: int64(number(arguments[3])), LeaderEpoch: -1}
		answer, err := admin.AlterConsumerGroupOffsets(
			arguments[0], map[string]map[int32]sarama.OffsetAndMetadata{arguments[1]: {partition: wanted}}, nil,
		)
		if err == nil {
			err = answer.Errors[arguments[1]][partition]
		}
		show(object{"error": code(err)})
	case "delete-offset":
		err := admin.DeleteConsumerGroupOffset(arguments[0], arguments[1], int32(number(arguments[2])))
		show(object{"error": code(err)})
	case "delete":
		show(object{"error": code(admin.DeleteConsumerGroup(arguments[0]))})
	}
}
