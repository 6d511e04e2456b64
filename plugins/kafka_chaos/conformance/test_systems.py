"""A system is known by its name, and says how long it takes and what its brokers log."""

from harness.cluster.systems.system import family_named, system_named
from harness.events import KINDS


def test_each_release_is_found_by_its_name(system_name: str) -> None:
    family = family_named(system_name)
    assert family.releases(), "a system without releases has one, with an empty name"
    for release in family.releases():
        system = family.of_release(release)
        assert system_named(system.name) == system
        assert system.name == (f"{system_name}:{release}" if release else system_name)


def test_it_says_what_its_brokers_log_and_how_long_they_take(system_name: str) -> None:
    for release in family_named(system_name).releases():
        system = family_named(system_name).of_release(release)
        assert system.emits <= set(KINDS)
        assert {field.partition(".")[0] for field in system.missing_fields} <= set(KINDS)
        times_s = (system.start_timeout_s, system.steady_timeout_s, system.recovery_timeout_s, system.gone_timeout_s)
        assert min(times_s) > 0
        assert system.lacks() == system.lacks().strip()


def test_a_requested_property_is_in_force_and_all_others_are_text(system_name: str) -> None:
    for release in family_named(system_name).releases():
        effective = family_named(system_name).of_release(release).effective(3, {"min.insync.replicas": "2"})
        assert effective["min.insync.replicas"] == "2"
        assert all(isinstance(value, str) for value in effective.values())


def test_lines_that_are_none_are_no_state_changes(system_name: str) -> None:
    for release in family_named(system_name).releases():
        system = family_named(system_name).of_release(release)
        assert list(system.state_changes(b"", KINDS)) == []
        assert system.dated(b"") is None
        assert system.release_in(b"") == ""
