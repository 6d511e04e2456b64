import socket

import pytest

from harness.cluster import ports
from harness.cluster.ports import PortReservations, ephemeral_range, listens


def test_ports_are_different_free_and_outside_the_ephemeral_range() -> None:
    low, high = ephemeral_range()
    with PortReservations() as reservations:
        chosen = reservations.reserve(20)
    assert len(set(chosen)) == 20
    assert not any(low <= port <= high for port in chosen)
    for port in chosen:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", port))


def test_a_port_is_reserved_once_until_it_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    with PortReservations() as chooser:
        (port,) = chooser.reserve(1)
    monkeypatch.setattr(ports, "LOWEST_PORT", port)
    monkeypatch.setattr(ports, "HIGHEST_PORT", port)
    with PortReservations() as first, PortReservations() as second:
        assert first.reserve(1) == [port]
        with pytest.raises(OSError, match="only 0 of 1 ports are free"):
            second.reserve(1)
        with pytest.raises(OSError, match="only 0 of 1 ports are free"):
            first.reserve(1)
        first.release()
        assert second.reserve(1) == [port]


def test_a_port_that_somebody_listens_on_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    with PortReservations() as chooser, socket.socket() as listener:
        (port,) = chooser.reserve(1)
        chooser.release()
        listener.bind(("127.0.0.1", port))
        assert not listens(port)
        listener.listen()
        assert listens(port)
        monkeypatch.setattr(ports, "LOWEST_PORT", port)
        monkeypatch.setattr(ports, "HIGHEST_PORT", port)
        with pytest.raises(OSError, match="only 0 of 1 ports are free"):
            chooser.reserve(1)
