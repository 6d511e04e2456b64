"""The suites on tables of the facts, and the stored form of each."""

import json

import pytest

from tests.analysis.fact_rows import committed, fetched, led, table_of

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def validated(spark):
    """Validate rows by a suite: call with its name and the rows, to get the types of expectation that failed."""
    import great_expectations as gx
    from great_expectations.data_context.types.base import DataContextConfig, InMemoryStoreBackendDefaults

    from expectations.suites import SUITES

    config = DataContextConfig(store_backend_defaults=InMemoryStoreBackendDefaults(), analytics_enabled=False)
    context = gx.get_context(mode="ephemeral", project_config=config)
    context.variables.progress_bars = {"globally": False, "metric_calculations": False}
    source = context.data_sources.add_spark("tests")
    definitions = {}
    for suite in SUITES:
        batch = source.add_dataframe_asset(suite.fact).add_batch_definition_whole_dataframe("whole")
        built = context.suites.add(suite.build())
        definitions[suite.name] = gx.ValidationDefinition(name=suite.name, data=batch, suite=built)

    def failed(name, rows):
        frame = table_of(spark, name, [row for _, row in rows])
        result = definitions[name].run(batch_parameters={"dataframe": frame})
        assert not [r for r in result.results if str(r.exception_info).count("'raised_exception': True")]
        return [r.expectation_config.type for r in result.results if not r.success]

    return failed


LEADERS = {
    "epochs grow, one leader each": ([led(1, 0), led(-1, 1), led(2, 2)], []),
    "an epoch comes twice in ZooKeeper": (
        [led(1, 1, zxid=5), led(1, 1, zxid=6)],
        ["expect_leader_epochs_to_increase"],
    ),
    "an epoch goes back": ([led(1, 3, zxid=5), led(1, 2, zxid=6)], ["expect_leader_epochs_to_increase"]),
    "each partition has its own epochs": ([led(1, 1, zxid=5), led(1, 1, zxid=6, partition=1)], []),
    "each run has its own epochs": ([led(1, 1, zxid=5), led(1, 1, zxid=6, run_id="run-2")], []),
    "a broker claims another's epoch": (
        [led(1, 0), led(2, 0, zxid=None, life=None)],
        ["expect_one_leader_per_leader_epoch"],
    ),
    "no leader is nobody's rival": ([led(-1, 1), led(2, 1, zxid=None)], []),
}


@pytest.mark.parametrize("case", LEADERS)
def test_leader_epochs(case, validated):
    rows, types = LEADERS[case]
    assert validated("leader_epochs", rows) == types


def counted(row):
    """The row with its place in the sequence, as the fact has it."""
    name, values = row
    at = values["complete_ns"] if values["kind"] == "commit" else values["invoke_ns"]
    return name, values | {"counts_ns": at}


OFFSETS = {
    "a commit is read back": ([counted(committed(5, at=(1, 2))), counted(fetched(5, at=(3, 4)))], []),
    "less than was committed is read back": (
        [counted(committed(5, at=(1, 2))), counted(fetched(4, at=(3, 4)))],
        ["expect_committed_offsets_never_to_regress"],
    ),
    "the commit has vanished": (
        [counted(committed(5, at=(1, 2))), counted(fetched(-1, at=(3, 4)))],
        ["expect_committed_offsets_never_to_regress"],
    ),
    "a group rewinds": (
        [counted(committed(5, at=(1, 2))), counted(committed(3, at=(3, 4))), counted(fetched(3, at=(5, 6)))],
        [],
    ),
    "a commit that does not count": ([counted(committed(5, at=(1, 2))), fetched(4, at=(3, 4))], []),
    "another group": ([counted(committed(5, at=(1, 2))), counted(fetched(4, at=(3, 4), group="g1"))], []),
}


@pytest.mark.parametrize("case", OFFSETS)
def test_committed_offsets(case, validated):
    rows, types = OFFSETS[case]
    assert validated("committed_offsets", rows) == types


def test_the_stored_suites_are_those_in_code():
    from expectations.suites import SUITES, as_json, stored_at

    for suite in SUITES:
        assert stored_at(suite).read_text(encoding="utf-8") == as_json(suite), "run python -m expectations"
    assert {path.stem for path in stored_at(SUITES[0]).parent.glob("*.json")} == {suite.name for suite in SUITES}


def test_a_stored_suite_is_read_back_as_the_same_expectations():
    from great_expectations.core.expectation_suite import ExpectationSuite

    from expectations.suites import SUITES, stored_at

    for suite in SUITES:
        stored = json.loads(stored_at(suite).read_text(encoding="utf-8"))
        read = ExpectationSuite(name=stored["name"], expectations=stored["expectations"])
        assert [expectation.configuration for expectation in read.expectations] == [
            expectation.configuration for expectation in suite.build().expectations
        ]
