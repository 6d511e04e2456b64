from harness.store.history import Sign
from tests.checks.answers import table_of
from tests.checks.signs_of_life import cases

CASES = cases((Sign.REGISTERED, Sign.LED, Sign.IN_SYNC), other=Sign.COMMIT)

test_what_is_whole_again_in_peace = table_of("I31", CASES)
