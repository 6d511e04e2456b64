package org.kafkachaos.recorder;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.zip.CRC32;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;

/**
 * The file of one client, its lines numbered and chained, as docs/reference/evidence.md describes them. The line that
 * begins a send is in the file before the record leaves the client.
 */
final class Lines implements AutoCloseable {
    static final String FOLDER = "kafka.chaos.folder";
    static final String NAME = "kafka.chaos.name";
    static final String ID_HEADER = "kafka-chaos-id";
    private static final int LONGEST_VALUE = 200;
    private static final int HELD_BYTES = 1 << 16;
    private static final AtomicLong NUMBERS = new AtomicLong();

    final String process;
    private final OutputStream file;
    private final StringBuilder hex = new StringBuilder(8);
    private CRC32 checksum = new CRC32();
    private long index;
    private long written;
    private boolean closed;

    Lines(Map<String, ?> configs, String kind) {
        Object folder = configs.get(FOLDER);
        if (folder == null) {
            throw new IllegalArgumentException(FOLDER + " is not set: it names the folder for the history");
        }
        Object name = configs.get(NAME);
        String prefix = name == null ? "j" + ProcessHandle.current().pid() : name.toString();
        process = prefix + "-" + kind + "-" + NUMBERS.getAndIncrement();
        try {
            Path path = Files.createDirectories(Path.of(folder.toString())).resolve(process + ".jsonl");
            file = new BufferedOutputStream(
                    Files.newOutputStream(path, StandardOpenOption.CREATE_NEW, StandardOpenOption.APPEND), HELD_BYTES);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    synchronized long next() {
        return index++;
    }

    /**
     * Writes a line: what it says beside its index, its process and its instant, without braces. The beginning of an
     * operation is on file when this returns; its end waits for the next beginning.
     */
    synchronized void add(long number, String type, String fields) {
        add(number, type, System.nanoTime(), fields);
    }

    /** Writes a line of an operation that was at an earlier instant. */
    synchronized void add(long number, String type, long instant, String fields) {
        add("{\"index\":" + number + ",\"process\":" + quoted(process) + ",\"time_ns\":" + instant + ",\"type\":\"" + type + "\"," + fields);
        if (type.equals("invoke")) {
            flush();
        }
    }

    private void flush() {
        try {
            if (!closed) {
                file.flush();
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    synchronized void setting(String name, Object value) {
        add(next(), "invoke", "\"kind\":\"setting\",\"key\":" + quoted(name) + ",\"value\":" + quoted("" + value));
    }

    private void add(String fields) {
        if (closed) {
            return;
        }
        byte[] body = (fields + ",\"line\":" + written).getBytes(StandardCharsets.UTF_8);
        checksum.update(body);
        hex.setLength(0);
        String digits = Long.toHexString(checksum.getValue());
        hex.append("00000000", 0, 8 - digits.length()).append(digits);
        try {
            byte[] tail = (",\"chain\":\"" + hex + "\"}\n").getBytes(StandardCharsets.UTF_8);
            byte[] line = new byte[body.length + tail.length];
            System.arraycopy(body, 0, line, 0, body.length);
            System.arraycopy(tail, 0, line, body.length, tail.length);
            file.write(line);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        written++;
    }

    /** Writes the end of the file; what comes later is not written. */
    @Override
    public synchronized void close() {
        if (closed) {
            return;
        }
        if (written > 0) {
            add("{\"lines\":" + written);
        }
        closed = true;
        try {
            file.close();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    static String idOf(Object value, Headers headers) {
        Header stamp = headers.lastHeader(ID_HEADER);
        if (stamp != null) {
            return new String(stamp.value(), StandardCharsets.UTF_8);
        }
        byte[] data = value instanceof byte[]
                ? (byte[]) value
                : value == null ? new byte[0] : value.toString().getBytes(StandardCharsets.UTF_8);
        String text = new String(data, StandardCharsets.UTF_8);
        return data.length <= LONGEST_VALUE && text.indexOf('\ufffd') < 0 ? text : sha256(data);
    }

    static String quoted(String text) {
        StringBuilder out = new StringBuilder(text.length() + 2).append('"');
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < ' ' || c > '~') {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        return out.append('"').toString();
    }

    private static String sha256(byte[] data) {
        try {
            StringBuilder out = new StringBuilder(64);
            for (byte each : MessageDigest.getInstance("SHA-256").digest(data)) {
                out.append(String.format("%02x", each));
            }
            return out.toString();
        } catch (NoSuchAlgorithmException error) {
            throw new IllegalStateException(error);
        }
    }
}
