import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * Recorded clients send 60 records and read them, with commits; then the group's offsets are changed by an administrator
 * who is not recorded: kept, back (an earlier one) or gone (none).
 *
 *     java Recorded SERVERS FOLDER TOPIC kept|back|gone manual|automatic
 */
class Recorded {
    static final String STRING = "org.apache.kafka.common.serialization.String";
    static final int RECORDS = 60;

    public static void main(String[] arguments) throws Exception {
        String topic = arguments[2];
        Map<String, Object> common = new HashMap<>(Map.of("bootstrap.servers", arguments[0]));
        Admin admin = Admin.create(common);
        admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
        common.put("kafka.chaos.folder", arguments[1]);

        Map<String, Object> sending = new HashMap<>(common);
        sending.putAll(Map.of("key.serializer", STRING + "Serializer", "value.serializer", STRING + "Serializer"));
        sending.put("interceptor.classes", "org.kafkachaos.recorder.RecordingProducerInterceptor");
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(sending)) {
            for (int number = 0; number < RECORDS; number++) {
                producer.send(new ProducerRecord<>(topic, "order-" + number));
            }
        }

        boolean manual = arguments[4].equals("manual");
        Map<String, Object> reading = new HashMap<>(common);
        reading.putAll(Map.of("key.deserializer", STRING + "Deserializer", "value.deserializer", STRING + "Deserializer"));
        reading.putAll(Map.of("group.id", topic, "auto.offset.reset", "earliest", "max.poll.records", 20));
        reading.put("enable.auto.commit", !manual);
        reading.put("interceptor.classes", "org.kafkachaos.recorder.RecordingConsumerInterceptor");
        TopicPartition partition = new TopicPartition(topic, 0);
        KafkaConsumer<String, String> consumer = new KafkaConsumer<>(reading);
        consumer.assign(List.of(partition));
        int read = 0;
        while (read < RECORDS) {
            for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofSeconds(1))) {
                read++;
            }
            if (manual) {
                consumer.commitSync();
            }
        }
        switch (arguments[3]) {
            case "kept" -> {}
            case "back" -> admin.alterConsumerGroupOffsets(topic, Map.of(partition, new OffsetAndMetadata(20))).all().get();
            case "gone" -> admin.deleteConsumerGroupOffsets(topic, Set.of(partition)).all().get();
            default -> throw new IllegalArgumentException(arguments[3]);
        }
        consumer.close();
        admin.close();
    }
}
