"""The custom expectations on tables that are not ours: other column names, and the sentence that Data Docs shows."""

import pytest

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def batch_of(spark):
    """Make a batch of a user's own table: call with rows and a schema."""
    import great_expectations as gx
    from great_expectations.data_context.types.base import DataContextConfig, InMemoryStoreBackendDefaults

    config = DataContextConfig(store_backend_defaults=InMemoryStoreBackendDefaults(), analytics_enabled=False)
    context = gx.get_context(mode="ephemeral", project_config=config)
    context.variables.progress_bars = {"globally": False, "metric_calculations": False}
    definition = (
        context.data_sources.add_spark("own").add_dataframe_asset("table").add_batch_definition_whole_dataframe("whole")
    )
    return lambda rows, schema: definition.get_batch({"dataframe": spark.createDataFrame(rows, schema)})


@pytest.mark.parametrize(
    ("rows", "unexpected"),
    [
        pytest.param([("a", 1, 10), ("a", 2, 11), ("b", 1, 10)], [], id="epochs of each shard grow"),
        pytest.param([("a", 2, 10), ("a", 2, 11)], [{"shard": "a", "term": 2, "at": 11}], id="an epoch is repeated"),
        pytest.param([("a", 2, 10), ("a", None, 11)], [], id="a row without an epoch is left out"),
    ],
)
def test_leader_epochs_of_another_system(batch_of, rows, unexpected):
    from expectations.leader_epochs import ExpectLeaderEpochsToIncrease

    expectation = ExpectLeaderEpochsToIncrease(key_columns=["shard"], epoch_column="term", order_column="at")
    result = batch_of(rows, "shard string, term int, at int").validate(expectation)
    assert result.success is (not unexpected)
    assert result.result["partial_unexpected_list"] == unexpected


@pytest.mark.parametrize(
    ("rows", "success"),
    [
        pytest.param([("a", 1, 7), ("a", 1, 7), ("a", 2, 8)], True, id="one leader a term"),
        pytest.param([("a", 1, 7), ("a", 1, 8)], False, id="two leaders in a term"),
        pytest.param([("a", 1, 0), ("a", 1, 8)], True, id="zero stands for no leader"),
    ],
)
def test_leaders_of_another_system(batch_of, rows, success):
    from expectations.leader_epochs import ExpectOneLeaderPerLeaderEpoch

    expectation = ExpectOneLeaderPerLeaderEpoch(
        key_columns=["shard"], epoch_column="term", leader_column="node", no_leader=0
    )
    assert batch_of(rows, "shard string, term int, node int").validate(expectation).success is success


@pytest.mark.parametrize(
    ("rows", "success"),
    [
        pytest.param([("g", 1, 5), ("g", 2, 5), ("g", 3, 9), ("h", 4, 0)], True, id="it stays or grows"),
        pytest.param([("g", 1, 5), ("g", 2, 9), ("g", 3, 6)], False, id="it goes back"),
    ],
)
def test_committed_offsets_of_a_table_without_kinds(batch_of, rows, success):
    from expectations.committed_offsets import ExpectCommittedOffsetsNeverToRegress

    expectation = ExpectCommittedOffsetsNeverToRegress(
        key_columns=["team"], offset_column="position", order_column="day"
    )
    assert batch_of(rows, "team string, day int, position bigint").validate(expectation).success is success


def test_an_expectation_says_its_sentence_with_the_columns_it_is_about():
    from expectations.committed_offsets import ExpectCommittedOffsetsNeverToRegress

    expectation = ExpectCommittedOffsetsNeverToRegress(
        key_columns=["team"], offset_column="position", order_column="day"
    )
    said = "position must never go back in the order of day, for each team."
    assert expectation.told(expectation.configuration.kwargs) == said
    (content,) = expectation._prescriptive_renderer(configuration=expectation.configuration)
    template = content.string_template["template"]
    assert template == ExpectCommittedOffsetsNeverToRegress.sentence
    assert content.string_template["params"] == {"offset_column": "position", "order_column": "day", "key": "team"}
