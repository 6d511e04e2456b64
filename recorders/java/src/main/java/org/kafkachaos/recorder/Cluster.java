package org.kafkachaos.recorder;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/** What an administrator's client with the same connection says of the cluster; nothing where it does not answer. */
final class Cluster {
    private static final long ASK_S = 10;
    private static final String MINIMUM = "min.insync.replicas";
    private static final String UNCLEAN = "unclean.leader.election.enable";

    private Cluster() {}

    private interface Question<T> {
        T ask(Admin admin) throws ExecutionException, InterruptedException, TimeoutException;
    }

    /** Returns min_insync_replicas and unclean_leader_election: of all topics, what allows the most. */
    static Map<String, Object> settingsOf(Map<String, ?> configs, Collection<String> topics) {
        if (topics.isEmpty()) {
            return Map.of();
        }
        List<ConfigResource> asked = new ArrayList<>();
        topics.forEach(topic -> asked.add(new ConfigResource(ConfigResource.Type.TOPIC, topic)));
        return answer(configs, Map.of(), admin -> {
            Map<String, Object> settings = new TreeMap<>();
            int minimum = Integer.MAX_VALUE;
            boolean unclean = false;
            for (Config config : admin.describeConfigs(asked).all().get(ASK_S, TimeUnit.SECONDS).values()) {
                minimum = Math.min(minimum, Integer.parseInt(config.get(MINIMUM).value()));
                unclean |= Boolean.parseBoolean(config.get(UNCLEAN).value());
            }
            settings.put("min_insync_replicas", minimum);
            settings.put("unclean_leader_election", unclean);
            return settings;
        });
    }

    /** Returns the first offset and the end of every partition of the topics. */
    static Map<TopicPartition, long[]> offsetsOf(Map<String, ?> configs, Collection<String> topics) {
        return answer(configs, Map.of(), admin -> {
            Map<TopicPartition, OffsetSpec> first = new HashMap<>();
            Map<TopicPartition, OffsetSpec> last = new HashMap<>();
            admin.describeTopics(topics).allTopicNames().get(ASK_S, TimeUnit.SECONDS).forEach((topic, about) ->
                    about.partitions().forEach(each -> {
                        first.put(new TopicPartition(topic, each.partition()), OffsetSpec.earliest());
                        last.put(new TopicPartition(topic, each.partition()), OffsetSpec.latest());
                    }));
            Map<TopicPartition, long[]> offsets = new HashMap<>();
            admin.listOffsets(first).all().get(ASK_S, TimeUnit.SECONDS).forEach(
                    (partition, answer) -> offsets.put(partition, new long[] {answer.offset(), 0}));
            admin.listOffsets(last).all().get(ASK_S, TimeUnit.SECONDS).forEach(
                    (partition, answer) -> offsets.get(partition)[1] = answer.offset());
            return offsets;
        });
    }

    /** Returns the committed offsets of the consumer's group, null for none; of no partition where it does not answer. */
    static Map<TopicPartition, OffsetAndMetadata> committedOf(
            Map<String, ?> configs, Collection<TopicPartition> partitions) {
        String group = configs.get("group.id").toString();
        ListConsumerGroupOffsetsSpec asked = new ListConsumerGroupOffsetsSpec().topicPartitions(partitions);
        return answer(configs, Map.of(), admin -> admin.listConsumerGroupOffsets(Map.of(group, asked))
                .partitionsToOffsetAndMetadata(group).get(ASK_S, TimeUnit.SECONDS));
    }

    /** Returns whether the consumer's group has committed an offset, or may have. */
    static boolean hasCommitted(Map<String, ?> configs) {
        Object group = configs.get("group.id");
        return group != null && answer(configs, true, admin -> !admin.listConsumerGroupOffsets(group.toString())
                .partitionsToOffsetAndMetadata().get(ASK_S, TimeUnit.SECONDS).isEmpty());
    }

    private static <T> T answer(Map<String, ?> configs, T without, Question<T> question) {
        Map<String, Object> connection = new HashMap<>();
        for (String name : AdminClientConfig.configNames()) {
            if (configs.get(name) != null && !name.startsWith("metric") && !name.equals("client.id")) {
                connection.put(name, configs.get(name));
            }
        }
        try (Admin admin = Admin.create(connection)) {
            return question.ask(admin);
        } catch (KafkaException | ExecutionException | TimeoutException | NullPointerException error) {
            return without;
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            return without;
        }
    }
}
