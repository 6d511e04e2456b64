from harness.store.history import Sign
from tests.checks.answers import table_of
from tests.checks.signs_of_life import cases

CASES = cases((Sign.PRODUCE, Sign.FETCH, Sign.READ, Sign.COMMIT), other=Sign.IN_SYNC)

test_what_is_served_again_in_peace = table_of("I32", CASES)
