package org.kafkachaos.recorder;

import java.util.ArrayDeque;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/**
 * What a consumer commits for its group. An interceptor hears of a commit when it has succeeded, at the earliest with
 * its response: the line that begins it has an earlier instant, at which the consumer had got that far.
 */
final class Commits {
    private static final int MOST_POLLS = 1000;

    /** The records of one poll of one partition: the first offset, the one after the last, and the instant. */
    private static final class Delivered {
        final long first;
        final long next;
        final long instant = System.nanoTime();

        Delivered(long first, long next) {
            this.first = first;
            this.next = next;
        }
    }

    private static final class Partition {
        final ArrayDeque<Delivered> polls = new ArrayDeque<>();
        long lowest = Long.MAX_VALUE;
        long acknowledged = -1;
    }

    private final Lines lines;
    private final String group;
    private final String mode;
    private final long began = System.nanoTime();
    private final Map<TopicPartition, Partition> partitions = new TreeMap<>(
            (one, other) -> one.toString().compareTo(other.toString()));

    Commits(Lines lines, Map<String, ?> configs) {
        this.lines = lines;
        group = String.valueOf(configs.get("group.id"));
        Object automatic = configs.get("enable.auto.commit");
        mode = automatic == null || Boolean.parseBoolean(automatic.toString()) ? "automatic" : "manual";
    }

    synchronized void delivered(TopicPartition at, long first, long next) {
        Partition known = partitions.computeIfAbsent(at, each -> new Partition());
        known.lowest = Math.min(known.lowest, first);
        known.polls.add(new Delivered(first, next));
        if (known.polls.size() > MOST_POLLS) {
            known.polls.remove();
        }
    }

    synchronized void committed(TopicPartition at, long offset) {
        Partition known = partitions.computeIfAbsent(at, each -> new Partition());
        long since = known.polls.stream()
                .filter(poll -> poll.first < offset && offset <= poll.next)
                .mapToLong(poll -> poll.instant)
                .findFirst()
                .orElse(began);
        known.lowest = Math.min(known.lowest, offset);
        known.acknowledged = offset;
        String fields = place("commit", at) + ",\"mode\":\"" + mode + "\",\"offset\":" + offset;
        long index = lines.next();
        lines.add(index, "invoke", since, fields);
        lines.add(index, "ok", fields);
    }

    /**
     * Reads the committed offsets back. A commit that failed may have succeeded, and an interceptor does not hear of
     * it: what is read back is recorded where no such commit explains it.
     */
    synchronized void readBack(Map<String, ?> configs) {
        partitions.values().removeIf(known -> known.acknowledged < 0);
        if (partitions.isEmpty()) {
            return;
        }
        long asked = System.nanoTime();
        Map<TopicPartition, OffsetAndMetadata> answers = Cluster.committedOf(configs, partitions.keySet());
        answers.forEach((at, answer) -> {
            long offset = answer == null ? -1 : answer.offset();
            Partition known = partitions.get(at);
            if (offset < known.acknowledged && offset >= known.lowest) {
                System.err.println("kafka-chaos: group " + group + " committed " + known.acknowledged + " of " + at
                        + " and has " + offset + ", which is not recorded: a commit that failed may explain it");
                return;
            }
            String fields = place("fetch_committed", at);
            long index = lines.next();
            lines.add(index, "invoke", asked, fields);
            lines.add(index, "ok", fields + ",\"offset\":" + offset);
        });
    }

    private String place(String kind, TopicPartition at) {
        return "\"kind\":\"" + kind + "\",\"group\":" + Lines.quoted(group) + ",\"topic\":" + Lines.quoted(at.topic())
                + ",\"partition\":" + at.partition();
    }
}
