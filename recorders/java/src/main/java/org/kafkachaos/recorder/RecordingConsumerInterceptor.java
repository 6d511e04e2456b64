package org.kafkachaos.recorder;

import java.util.List;
import java.util.Map;
import java.util.StringJoiner;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerInterceptor;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/**
 * Records what a consumer is handed out and what it commits; where it is closed, the ends of the partitions that it read
 * and the committed offsets of its group.
 */
public final class RecordingConsumerInterceptor<K, V> implements ConsumerInterceptor<K, V> {
    private Lines lines;
    private Map<String, ?> configs;
    private boolean fromStart;
    private Commits commits;
    private final Map<TopicPartition, Long> read = new java.util.concurrent.ConcurrentHashMap<>();

    @Override
    public void configure(Map<String, ?> configs) {
        this.configs = configs;
        lines = new Lines(configs, "consumer");
        commits = new Commits(lines, configs);
        fromStart = "earliest".equals(String.valueOf(configs.get("auto.offset.reset")))
                && !Cluster.hasCommitted(configs);
    }

    @Override
    public ConsumerRecords<K, V> onConsume(ConsumerRecords<K, V> records) {
        if (records.isEmpty()) {
            return records;
        }
        StringJoiner listed = new StringJoiner(",", "[", "]");
        for (ConsumerRecord<K, V> record : records) {
            read.putIfAbsent(new TopicPartition(record.topic(), record.partition()), record.offset());
            listed.add("{\"topic\":" + Lines.quoted(record.topic()) + ",\"partition\":" + record.partition()
                    + ",\"offset\":" + record.offset() + ",\"value\":"
                    + Lines.quoted(Lines.idOf(record.value(), record.headers())) + "}");
        }
        long index = lines.next();
        String fields = "\"kind\":\"poll\",\"mode\":\"subscribe\"";
        lines.add(index, "invoke", fields);
        lines.add(index, "ok", fields + ",\"records\":" + listed);
        for (TopicPartition partition : records.partitions()) {
            List<ConsumerRecord<K, V>> polled = records.records(partition);
            commits.delivered(partition, polled.get(0).offset(), polled.get(polled.size() - 1).offset() + 1);
        }
        return records;
    }

    @Override
    public void onCommit(Map<TopicPartition, OffsetAndMetadata> offsets) {
        offsets.forEach((partition, committed) -> commits.committed(partition, committed.offset()));
    }

    @Override
    public void close() {
        TreeSet<String> topics = new TreeSet<>();
        read.keySet().forEach(partition -> topics.add(partition.topic()));
        Map<TopicPartition, long[]> ends = Cluster.offsetsOf(configs, topics);
        boolean whole = !ends.isEmpty();
        TreeSet<String> deleting = new TreeSet<>();
        for (Map.Entry<TopicPartition, long[]> each : ends.entrySet()) {
            TopicPartition partition = each.getKey();
            String fields = "\"kind\":\"end_offset\",\"topic\":" + Lines.quoted(partition.topic()) + ",\"partition\":"
                    + partition.partition();
            long index = lines.next();
            lines.add(index, "invoke", fields);
            lines.add(index, "ok", fields + ",\"offset\":" + each.getValue()[1]);
            whole &= each.getValue()[0] == 0;
            if (each.getValue()[0] > 0) {
                deleting.add(partition.topic());
            }
        }
        if (whole) {
            lines.setting("read_from_start", fromStart);
        }
        if (!ends.isEmpty()) {
            lines.setting("deleting_topics", deleting.isEmpty() ? "none" : String.join(",", deleting));
        }
        commits.readBack(configs);
        Cluster.settingsOf(configs, topics).forEach(lines::setting);
        lines.close();
    }
}
