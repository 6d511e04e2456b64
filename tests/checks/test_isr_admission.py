from tests.analysis.fact_rows import claimed
from tests.analysis.protocol_rows import joined, proposed, registered
from tests.checks.answers import fails, noted, passes, table_of, unknown

LEADS = [claimed(1, 0, high_watermark=0, end=0), registered(1), registered(2, 20, until_zxid=40)]

CASES = {
    "it joins at the high watermark": passes(*LEADS, proposed([1, 2], [9, 5])),
    "it joins below the high watermark": fails(
        *LEADS, proposed([1, 2], [9, 4]), offsets=[4], text="broker 2 was proposed"
    ),
    "it joins below the epoch's start": fails(
        *LEADS, proposed([1, 2], [9, 5], epoch_start_offset=6), text="the epoch's start at 6"
    ),
    "a member that lags was there before": passes(*LEADS, proposed([1, 3, 2], [9, 2, 5], old_isr=[1, 3])),
    "a smaller ISR is not judged": passes(*LEADS, proposed([1], [4], kind="shrink", old_isr=[1, 2])),
    "it is registered when it joins": passes(*LEADS, registered(4, 20), joined(2, 30), joined(4, 30)),
    "it is not registered, and one of that number is in another run": noted(*LEADS, joined(4, 30)),
    "it is not registered yet": noted(*LEADS, registered(4, 40), joined(4, 30)),
    "a new partition begins with it in the ISR": passes(*LEADS, joined(4, 30, old_isr=[])),
    "it says that it is registered, and is not any more": noted(
        *LEADS, registered(2, 20, source="broker"), joined(2, 50)
    ),
    "it is not registered any more": noted(*LEADS, joined(2, 50)),
    "an older broker does not say how far it had come": unknown(*LEADS, proposed([1, 2], None), text="do not say ends"),
    "there was no leader": unknown(registered(1), text="leadership_claims"),
}

CASES |= CASES["it joins at the high watermark"].without_each("leadership_claims", "registrations")

test_who_joins_the_isr = table_of("I13", CASES)
