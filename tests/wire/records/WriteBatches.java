import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.*;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.utils.BufferSupplier;

/**
 * Writes kafka-3.9.2.txt with Kafka's own classes, one batch a line: java -cp 'LIBS/*' WriteBatches.java > kafka-3.9.2.txt,
 * where LIBS holds org.apache.kafka:kafka-clients:3.9.2 and what it depends on.
 */
public class WriteBatches {
    static final long T = 1700000000000L;
    static final Header[] NO_HEADERS = {};

    static byte[] b(String text) {
        return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
    }

    static MemoryRecordsBuilder builder(int magic, CompressionType codec, TimestampType type, long offset) {
        return MemoryRecords.builder(ByteBuffer.allocate(1 << 16), (byte) magic, Compression.of(codec).build(),
            type, offset, T + 999, RecordBatch.NO_PRODUCER_ID, RecordBatch.NO_PRODUCER_EPOCH,
            RecordBatch.NO_SEQUENCE, false, RecordBatch.NO_PARTITION_LEADER_EPOCH);
    }

    static MemoryRecords few(MemoryRecordsBuilder builder) {
        builder.append(T, b("k1"), b("v1"));
        builder.append(T + 5, null, b("only a value"));
        builder.append(T + 3, b("tombstone"), null);
        builder.append(T + 10, b(""), b(""));
        return builder.build();
    }

    static void print(String name, MemoryRecords records) {
        ByteBuffer buffer = records.buffer().duplicate();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        System.out.println(name + " " + HexFormat.of().formatHex(bytes));
    }

    public static void main(String[] args) {
        for (int magic = 0; magic <= 2; magic++) {
            for (CompressionType codec : CompressionType.values()) {
                if (codec == CompressionType.ZSTD && magic < 2)
                    continue;
                String name = "magic-" + magic + "-" + codec.name;
                print(name, few(builder(magic, codec, TimestampType.CREATE_TIME, 1000)));
                if (magic > 0)
                    print(name + "-append-time", few(builder(magic, codec, TimestampType.LOG_APPEND_TIME, 1000)));
                if (codec == CompressionType.NONE)
                    continue;
                MemoryRecordsBuilder large = builder(magic, codec, TimestampType.CREATE_TIME, 7);
                for (int i = 0; i < 3; i++)
                    large.append(T + i, b("large-" + i), b("0123456789".repeat(4000)));
                print(name + "-large", large.build());
            }
        }

        MemoryRecordsBuilder headers = builder(2, CompressionType.NONE, TimestampType.CREATE_TIME, 0);
        headers.append(T, b("k"), b("v"), new Header[] {
            new RecordHeader("trace", b("abc")), new RecordHeader("empty", b("")),
            new RecordHeader("null", null), new RecordHeader("\u00fc\u4f60", b("\u597d")) });
        print("headers", headers.build());

        MemoryRecordsBuilder transactional = MemoryRecords.builder(ByteBuffer.allocate(1024), (byte) 2,
            Compression.NONE, TimestampType.CREATE_TIME, 40, T, 4711L, (short) 3, 2147483646, true, 12);
        print("transactional", few(transactional));

        print("commit", MemoryRecords.withEndTransactionMarker(44, T, 12, 4711L, (short) 3,
            new EndTransactionMarker(ControlRecordType.COMMIT, 9)));
        print("abort", MemoryRecords.withEndTransactionMarker(45, T, 12, 4711L, (short) 3,
            new EndTransactionMarker(ControlRecordType.ABORT, 9)));

        MemoryRecordsBuilder compacted = builder(2, CompressionType.NONE, TimestampType.CREATE_TIME, 100);
        compacted.appendWithOffset(102, T + 7, b("a"), b("1"), NO_HEADERS);
        compacted.appendWithOffset(109, T + 2, b("b"), b("2"), NO_HEADERS);
        print("gaps", compacted.build());

        ByteBuffer empty = ByteBuffer.allocate(DefaultRecordBatch.RECORD_BATCH_OVERHEAD);
        DefaultRecordBatch.writeEmptyHeader(empty, (byte) 2, 4711L, (short) 3, 17, 200, 209, 12,
            TimestampType.CREATE_TIME, T, false, false);
        empty.flip();
        print("empty", MemoryRecords.readableRecords(empty));

        // The cleaner keeps the tombstone, and notes in the batch until when.
        ByteBuffer cleaned = ByteBuffer.allocate(4096);
        MemoryRecords dirty = few(builder(2, CompressionType.LZ4, TimestampType.CREATE_TIME, 1000));
        dirty.filterTo(new TopicPartition("t", 0), new MemoryRecords.RecordFilter(T + 5000, 60000) {
            @Override
            protected BatchRetentionResult checkBatchRetention(RecordBatch batch) {
                return new BatchRetentionResult(BatchRetention.DELETE_EMPTY, false);
            }

            @Override
            protected boolean shouldRetainRecord(RecordBatch batch, Record record) {
                return record.offset() >= 1002;
            }
        }, cleaned, Integer.MAX_VALUE, BufferSupplier.NO_CACHING);
        cleaned.flip();
        print("delete-horizon", MemoryRecords.readableRecords(cleaned));
    }
}
