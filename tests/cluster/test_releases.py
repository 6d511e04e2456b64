"""As which release a broker is started, and which one wrote what of its log."""

from pathlib import Path

import pytest

from harness.cluster.layout import BrokerPorts, ClusterLayout
from harness.cluster.releases import Writer, change, parts_of, system_of, writers

OLD, NEW = "kafka:3.3.2", "kafka:3.9.1"


@pytest.fixture
def layout(tmp_path: Path) -> ClusterLayout:
    brokers = {id_: BrokerPorts(client=100 + id_) for id_ in range(2)}
    made = ClusterLayout(
        root=tmp_path, run_id="r", driver="process", system=OLD, zookeeper={}, brokers=brokers, planted_bugs=()
    )
    for broker_id in brokers:
        made.config_file(broker_id).parent.mkdir(parents=True)
        made.human_log(broker_id).parent.mkdir(parents=True)
    return made


def test_a_broker_is_what_the_cluster_is_until_it_is_changed_and_the_others_stay_that(layout: ClusterLayout) -> None:
    assert writers(layout, 1) == (Writer(0, OLD),)
    layout.human_log(1).write_bytes(b"12345\n")
    change(layout, 1, NEW)
    layout.human_log(1).write_bytes(b"12345\n6789\n")
    for system in (NEW, OLD, OLD):
        change(layout, 1, system)
    assert writers(layout, 1) == (Writer(0, OLD), Writer(6, NEW), Writer(11, OLD))
    assert (system_of(layout, 0), system_of(layout, 1)) == (OLD, OLD)


def test_a_broker_that_has_logged_nothing_yet_may_be_changed(layout: ClusterLayout) -> None:
    change(layout, 0, NEW)
    assert writers(layout, 0) == (Writer(0, OLD), Writer(0, NEW))
    assert system_of(layout, 0) == NEW


@pytest.mark.parametrize(
    ("lines", "position", "by", "parts"),
    [
        pytest.param(b"ab\n", 0, [Writer(0, OLD)], [(OLD, b"ab\n")], id="one release wrote all"),
        pytest.param(
            b"ab\ncd\n",
            0,
            [Writer(0, OLD), Writer(3, NEW)],
            [(OLD, b"ab\n"), (NEW, b"cd\n")],
            id="one each wrote a line",
        ),
        pytest.param(
            b"cd\n", 3, [Writer(0, OLD), Writer(3, NEW)], [(NEW, b"cd\n")], id="what is new is of the later one"
        ),
        pytest.param(
            b"b\ncd\n", 1, [Writer(0, OLD), Writer(3, NEW)], [(OLD, b"b\n"), (NEW, b"cd\n")], id="from within a part on"
        ),
        pytest.param(
            b"ab\n", 0, [Writer(0, OLD), Writer(3, NEW)], [(OLD, b"ab\n")], id="the later one wrote nothing yet"
        ),
        pytest.param(
            b"ab\n", 0, [Writer(0, OLD), Writer(0, NEW)], [(NEW, b"ab\n")], id="the earlier one wrote nothing"
        ),
        pytest.param(b"", 3, [Writer(0, OLD), Writer(3, NEW)], [], id="nothing is new"),
    ],
)
def test_lines_are_of_the_release_that_wrote_them(
    lines: bytes, position: int, by: list[Writer], parts: list[tuple[str, bytes]]
) -> None:
    assert parts_of(lines, position, by) == parts
