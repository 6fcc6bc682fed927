"""When a place falls free: told from how fast debates end now, not from how long nobody asked."""

from __future__ import annotations

from moot.deploy.serving.rate import EndingRate


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def ends(rate: EndingRate, clock: Clock, count: int, each_s: float) -> None:
    for _ in range(count):
        clock.now += each_s
        rate.ended()


def test_a_quiet_time_is_no_part_of_the_pace() -> None:
    clock = Clock()
    rate = EndingRate(clock)
    ends(rate, clock, 256, 1.0)
    clock.now += 36_000.0
    assert rate.seconds_until(1) == 5.0  # nothing is known of now
    ends(rate, clock, 100, 1.0)
    assert 0.9 <= rate.seconds_until(1) <= 1.1
    assert 9.0 <= rate.seconds_until(10) <= 11.0


def test_many_ends_at_once_are_a_fast_pace() -> None:
    clock = Clock()
    rate = EndingRate(clock)
    ends(rate, clock, 1000, 0.01)
    assert rate.seconds_until(1) < 0.02
