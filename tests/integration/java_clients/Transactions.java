import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.TimeoutException;

/**
 * A transactional producer as Kafka's own client has it; the commands are those of go_clients/franz.
 *
 *     java Transactions.java SERVERS session|fence|late TOPIC TRANSACTIONAL-ID
 *     java Transactions.java SERVERS copy FROM TO GROUP TRANSACTIONAL-ID    until its input ends
 */
class Transactions {
    static final String STRING = "org.apache.kafka.common.serialization.String";

    static String servers;

    public static void main(String[] arguments) throws Exception {
        servers = arguments[0];
        switch (arguments[1]) {
            case "session" -> session(arguments[2], arguments[3]);
            case "fence" -> fence(arguments[2], arguments[3]);
            case "late" -> late(arguments[2], arguments[3]);
            case "copy" -> copy(arguments[2], arguments[3], arguments[4], arguments[5]);
            default -> throw new IllegalArgumentException(arguments[1]);
        }
        System.exit(0);
    }

    static void show(String name, Object value) {
        System.out.println("{\"" + name + "\": " + value + "}");
    }

    static void failed(String name, Throwable error) {
        while (error.getClass() == KafkaException.class && error.getCause() != null) error = error.getCause();
        show(name, "\"" + error.getClass().getSimpleName() + "\"");
    }

    static KafkaProducer<String, String> transactional(String id, int timeoutMs) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", servers);
        settings.put("transactional.id", id);
        settings.put("transaction.timeout.ms", timeoutMs);
        settings.put("key.serializer", STRING + "Serializer");
        settings.put("value.serializer", STRING + "Serializer");
        KafkaProducer<String, String> producer = new KafkaProducer<>(settings);
        producer.initTransactions();
        return producer;
    }

    /** Begins a transaction and writes the values from..to-1 in turn to three partitions. */
    static void write(KafkaProducer<String, String> producer, String topic, int from, int to) {
        producer.beginTransaction();
        for (int value = from; value < to; value++) {
            producer.send(new ProducerRecord<>(topic, value % 3, null, String.valueOf(value)));
        }
        producer.flush();
    }

    static void session(String topic, String id) {
        KafkaProducer<String, String> producer = transactional(id, 60_000);
        for (int number = 0; number < 3; number++) {
            write(producer, topic, 10 * number, 10 * number + 10);
            if (number == 1) producer.abortTransaction();
            else producer.commitTransaction();
        }
        show("error", "\"\"");
    }

    /** Has a second producer take over the id of the first, which then tries to commit. */
    static void fence(String topic, String id) {
        KafkaProducer<String, String> first = transactional(id, 60_000);
        write(first, topic, 0, 10);
        KafkaProducer<String, String> second = transactional(id, 60_000);
        write(second, topic, 10, 20);
        second.commitTransaction();
        commit(first);
    }

    /** Commits a transaction that the coordinator has aborted, once a line comes in. */
    static void late(String topic, String id) throws Exception {
        KafkaProducer<String, String> producer = transactional(id, 1_000);
        write(producer, topic, 0, 10);
        show("written", true);
        System.in.read();
        commit(producer);
    }

    static void commit(KafkaProducer<String, String> producer) {
        try {
            producer.commitTransaction();
            show("error", "\"\"");
        } catch (KafkaException error) {
            failed("error", error);
        }
    }

    static void copy(String from, String to, String group, String id) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", servers);
        settings.put("group.id", group);
        settings.put("isolation.level", "read_committed");
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        settings.put("session.timeout.ms", "6000");
        settings.put("heartbeat.interval.ms", "500");
        settings.put("max.poll.records", "20");
        settings.put("key.deserializer", STRING + "Deserializer");
        settings.put("value.deserializer", STRING + "Deserializer");
        KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings);
        KafkaProducer<String, String> producer = transactional(id, 30_000);
        consumer.subscribe(List.of(from));
        while (System.in.available() == 0) {
            ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
            if (records.isEmpty()) continue;
            try {
                producer.beginTransaction();
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                for (ConsumerRecord<String, String> each : records) {
                    producer.send(new ProducerRecord<>(to, each.partition(), each.key(), each.value()));
                    TopicPartition partition = new TopicPartition(each.topic(), each.partition());
                    offsets.put(partition, new OffsetAndMetadata(each.offset() + 1));
                }
                producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                retried(producer::commitTransaction);
                show("copied", records.count());
            } catch (ProducerFencedException error) {
                throw error;
            } catch (KafkaException error) {
                failed("failed", error);
                retried(producer::abortTransaction);
                back(consumer);
            }
        }
    }

    /** Does something again that the client asks to be done again. */
    static void retried(Runnable work) {
        while (true) {
            try {
                work.run();
                return;
            } catch (TimeoutException again) {
                failed("failed", again);
            }
        }
    }

    /** Goes back to what is committed. */
    static void back(KafkaConsumer<String, String> consumer) {
        Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(consumer.assignment());
        for (TopicPartition partition : consumer.assignment()) {
            OffsetAndMetadata offset = committed.get(partition);
            if (offset != null) consumer.seek(partition, offset);
            else consumer.seekToBeginning(List.of(partition));
        }
    }
}
