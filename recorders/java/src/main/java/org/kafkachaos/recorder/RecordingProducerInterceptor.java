package org.kafkachaos.recorder;

import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.producer.ProducerInterceptor;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;

/**
 * Records what a producer sends and how it ends. It stamps each record with the header kafka-chaos-id, by which the
 * acknowledgement is matched with the send (kafka-clients 4.1, KIP-512).
 */
public final class RecordingProducerInterceptor<K, V> implements ProducerInterceptor<K, V> {
    private Lines lines;
    private Map<String, ?> configs;
    private int acks;
    private final Map<String, Send> underWay = new ConcurrentHashMap<>();
    private final Set<String> topics = ConcurrentHashMap.newKeySet();

    private static final class Send {
        final long index;
        final String fields;

        Send(long index, String fields) {
            this.index = index;
            this.fields = fields;
        }
    }

    @Override
    public void configure(Map<String, ?> configs) {
        try {
            ProducerInterceptor.class.getMethod(
                    "onAcknowledgement", RecordMetadata.class, Exception.class, Headers.class);
        } catch (NoSuchMethodException error) {
            throw new IllegalArgumentException("RecordingProducerInterceptor takes kafka-clients 4.1 or later", error);
        }
        this.configs = configs;
        lines = new Lines(configs, "producer");
        Object given = configs.get("acks");
        acks = given == null || given.toString().equals("all") ? -1 : Integer.parseInt(given.toString());
        Object idempotence = configs.get("enable.idempotence");
        boolean idempotent = idempotence == null ? acks == -1 : Boolean.parseBoolean(idempotence.toString());
        lines.setting("idempotence", idempotent);
        lines.setting("acks", acks == -1 ? "all" : acks);
    }

    @Override
    public ProducerRecord<K, V> onSend(ProducerRecord<K, V> record) {
        long index = lines.next();
        String id = lines.process + ":" + index;
        record.headers().add(Lines.ID_HEADER, id.getBytes(StandardCharsets.UTF_8));
        topics.add(record.topic());
        String fields = "\"kind\":\"send\",\"topic\":" + Lines.quoted(record.topic()) + ",\"value\":" + Lines.quoted(id)
                + ",\"acks\":" + acks;
        if (record.key() != null) {
            fields += ",\"key\":" + Lines.quoted(record.key().toString());
        }
        underWay.put(id, new Send(index, fields));
        int partition = record.partition() == null ? -1 : record.partition();
        lines.add(index, "invoke", fields + ",\"partition\":" + partition);
        return record;
    }

    @Override
    public void onAcknowledgement(RecordMetadata metadata, Exception exception, Headers headers) {
        Header stamp = headers == null ? null : headers.lastHeader(Lines.ID_HEADER);
        Send send = stamp == null ? null : underWay.remove(new String(stamp.value(), StandardCharsets.UTF_8));
        if (send == null) {
            return;
        }
        if (exception == null && configs.get("transactional.id") != null) {
            lines.add(
                    send.index,
                    "info",
                    send.fields + ",\"error\":\"acknowledged in a transaction that may be aborted\"");
        } else if (exception == null) {
            long offset = metadata.hasOffset() ? metadata.offset() : -1;
            lines.add(
                    send.index, "ok", send.fields + ",\"partition\":" + metadata.partition() + ",\"offset\":" + offset);
        } else {
            lines.add(send.index, "info", send.fields + ",\"error\":" + Lines.quoted("" + exception.getMessage()));
        }
    }

    @Override
    public void close() {
        Cluster.settingsOf(configs, topics).forEach(lines::setting);
        lines.close();
    }
}
