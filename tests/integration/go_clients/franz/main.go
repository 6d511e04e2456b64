// Command franz is a member of a group, a producer and an administrator, as franz-go has them.
//
//	franz SERVERS create TOPIC PARTITIONS REPLICAS
//	franz SERVERS produce TOPIC PARTITIONS FROM TO    values FROM to TO-1, in turn to each partition
//	franz SERVERS member TOPIC GROUP STRATEGY [INSTANCE]    until its input ends; then it leaves
//	franz SERVERS describe|list|offsets|delete GROUP
//	franz SERVERS set-offset|delete-offset GROUP TOPIC PARTITION [OFFSET]
//	franz SERVERS session|fence|late TOPIC TRANSACTIONAL-ID
//	franz SERVERS copy FROM TO GROUP TRANSACTIONAL-ID    until its input ends
//
// It prints a line of JSON for each thing that it learns. An error is the number that the broker answered.
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

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

type object = map[string]any

var output sync.Mutex

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
	if err == nil {
		return 0
	}
	var answered *kerr.Error
	if !errors.As(err, &answered) {
		check(err)
	}
	return answered.Code
}

func client(servers string, options ...kgo.Opt) *kgo.Client {
	made, err := kgo.NewClient(append(options, kgo.SeedBrokers(splitServers(servers)...))...)
	check(err)
	return made
}

func splitServers(servers string) []string { return strings.Split(servers, ",") }

func produce(servers, topic string, partitions, from, to int) {
	producer := client(servers, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	defer producer.Close()
	records := make([]*kgo.Record, 0, to-from)
	for value := from; value < to; value++ {
		records = append(records, &kgo.Record{
			Topic: topic, Partition: int32(value % partitions), Value: []byte(strconv.Itoa(value)),
		})
	}
	check(producer.ProduceSync(context.Background(), records...).FirstErr())
	show(object{"produced": to - from})
}

func member(ctx context.Context, servers, topic, group, strategy string, instance []string) {
	balancers := map[string]kgo.GroupBalancer{
		"range": kgo.RangeBalancer(), "cooperative-sticky": kgo.CooperativeStickyBalancer(),
	}
	assigned := map[int32]bool{}
	change := func(held bool) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, topics map[string][]int32) {
			for _, partition := range topics[topic] {
				if held {
					assigned[partition] = true
				} else {
					delete(assigned, partition)
				}
			}
			show(object{"assigned": sorted(assigned)})
		}
	}
	options := []kgo.Opt{
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.Balancers(balancers[strategy]),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(),
		kgo.SessionTimeout(6 * time.Second), kgo.HeartbeatInterval(500 * time.Millisecond),
		kgo.OnPartitionsAssigned(change(true)), kgo.OnPartitionsRevoked(change(false)), kgo.OnPartitionsLost(change(false)),
		kgo.BlockRebalanceOnPoll(),
	}
	for _, id := range instance {
		options = append(options, kgo.InstanceID(id))
	}
	consumer := client(servers, options...)
	for ctx.Err() == nil {
		fetches := consumer.PollFetches(ctx)
		for _, failed := range fetches.Errors() {
			if ctx.Err() == nil {
				show(object{"failed": failed.Err.Error()})
			}
		}
		read := map[int32][]string{}
		fetches.EachRecord(func(record *kgo.Record) {
			read[record.Partition] = append(read[record.Partition], string(record.Value))
		})
		if len(read) > 0 {
			show(object{"read": read, "commit": code(consumer.CommitUncommittedOffsets(context.Background()))})
		}
		consumer.AllowRebalance()
	}
	consumer.CloseAllowingRebalance()
	show(object{"left": true})
}

func sorted(partitions map[int32]bool) []int32 {
	listed := make([]int32, 0, len(partitions))
	for partition := range partitions {
		listed = append(listed, partition)
	}
	sort.Slice(listed, func(one, other int) bool { return listed[one] < listed[other] })
	return listed
}

func describe(ctx context.Context, admin *kadm.Client, group string) {
	described, err := admin.DescribeGroups(ctx, group)
	check(err)
	this := described[group]
	members := []object{}
	for _, one := range this.Members {
		instance := ""
		if one.InstanceID != nil {
			instance = *one.InstanceID
		}
		partitions := map[int32]bool{}
		if assignment, ok := one.Assigned.AsConsumer(); ok {
			for _, topic := range assignment.Topics {
				for _, partition := range topic.Partitions {
					partitions[partition] = true
				}
			}
		}
		members = append(members, object{
			"client": one.ClientID, "host": one.ClientHost, "instance": instance, "partitions": sorted(partitions),
		})
	}
	show(object{
		"error": code(this.Err), "state": this.State, "type": this.ProtocolType, "protocol": this.Protocol, "members": members,
	})
}

func offsets(ctx context.Context, admin *kadm.Client, group string) {
	fetched, err := admin.FetchOffsets(ctx, group)
	check(err)
	committed := map[string]int64{}
	fetched.Each(func(each kadm.OffsetResponse) {
		committed[strconv.Itoa(int(each.Partition))] = each.At
	})
	show(committed)
}

func main() {
	servers, command, arguments := os.Args[1], os.Args[2], os.Args[3:]
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	switch command {
	case "produce":
		produce(servers, arguments[0], number(arguments[1]), number(arguments[2]), number(arguments[3]))
		return
	case "session":
		session(ctx, servers, arguments[0], arguments[1])
		return
	case "fence":
		fence(ctx, servers, arguments[0], arguments[1])
		return
	case "late":
		late(ctx, servers, arguments[0], arguments[1])
		return
	case "copy":
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			cancel()
		}()
		copyRecords(ctx, servers, arguments[0], arguments[1], arguments[2], arguments[3])
		return
	case "member":
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			cancel()
		}()
		member(ctx, servers, arguments[0], arguments[1], arguments[2], arguments[3:])
		return
	}
	admin := kadm.NewClient(client(servers))
	defer admin.Close()
	switch command {
	case "create":
		topic, partitions, replicas := arguments[0], number(arguments[1]), number(arguments[2])
		_, err := admin.CreateTopic(ctx, int32(partitions), int16(replicas), nil, topic)
		show(object{"error": code(err)})
	case "describe":
		describe(ctx, admin, arguments[0])
	case "list":
		states := map[string]string{}
		for _, state := range []string{"Stable", "Empty"} {
			listed, err := admin.ListGroups(ctx, state)
			check(err)
			if this, ok := listed[arguments[0]]; ok {
				states[state] = this.State
			}
		}
		show(states)
	case "offsets":
		offsets(ctx, admin, arguments[0])
	case "set-offset":
		wanted := kadm.Offsets{}
		wanted.AddOffset(arguments[1], int32(number(arguments[2])), int64(number(arguments[3])), -1)
		show(object{"error": code(admin.CommitAllOffsets(ctx, arguments[0], wanted))})
	case "delete-offset":
		partition := int32(number(arguments[2]))
		deleted, err := admin.DeleteOffsets(ctx, arguments[0], kadm.TopicsSet{arguments[1]: {partition: {}}})
		if err == nil {
			err = deleted[arguments[1]][partition]
		}
		show(object{"error": code(err)})
	case "delete":
		deleted, err := admin.DeleteGroups(ctx, arguments[0])
		check(err)
		show(object{"error": code(deleted[arguments[0]].Err)})
	}
}
