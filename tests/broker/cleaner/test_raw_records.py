"""Records as ranges of bytes are the records that a decoder sees."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.broker.cleaner.raw_records import raw_records, with_base_timestamp
from harness.broker.log.records import MalformedRecords, Record, decode_records, encode_records
from tests.broker.cleaner.compacted import NOW_MS

BYTES = st.one_of(st.none(), st.binary(max_size=3), st.binary(min_size=60, max_size=200))
RECORDS = st.lists(
    st.builds(
        lambda key, value, age_ms, headers: Record(
            key=key, value=value, timestamp_ms=NOW_MS - age_ms, headers=tuple(headers)
        ),
        BYTES,
        BYTES,
        st.integers(-(10**12), 10**12),
        st.lists(st.tuples(st.text(max_size=2), BYTES), max_size=2),
    ),
    min_size=1,
    max_size=200,
)


@settings(max_examples=30)
@given(records=RECORDS, shift_ms=st.integers(-(10**12), 10**12), keep=st.integers(1, 7))
def test_what_is_seen_and_what_is_copied(records: list[Record], shift_ms: int, keep: int) -> None:
    payload = encode_records(records, NOW_MS)
    raw = raw_records(payload, len(records))
    assert [(each.key, each.has_value) for each in raw] == [(each.key, each.value is not None) for each in records]
    assert [NOW_MS + each.timestamp_delta for each in raw] == [each.timestamp_ms for each in records]
    assert [each.offset_delta for each in raw] == list(range(len(records)))
    chosen = raw[::keep]
    copied = with_base_timestamp(payload, chosen, shift_ms)
    before = decode_records(payload, len(records), 0, NOW_MS)
    assert decode_records(copied, len(chosen), 0, NOW_MS - shift_ms) == before[::keep]


@settings(max_examples=30)
@given(records=RECORDS, cut=st.integers(1, 30))
def test_records_that_are_cut_short_are_refused(records: list[Record], cut: int) -> None:
    payload = encode_records(records, NOW_MS)
    for damaged in (payload[:-cut], payload + bytes(cut)):
        with pytest.raises(MalformedRecords):
            raw_records(damaged, len(records))


@given(payload=st.binary(max_size=60), count=st.integers(1, 4))
def test_any_bytes_are_read_or_refused(payload: bytes, count: int) -> None:
    try:
        records = raw_records(payload, count)
    except MalformedRecords:
        return
    assert records[-1].end == len(payload)
