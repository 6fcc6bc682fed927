"""Check of a metric's error for invalid input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def refuses(why: str, measure: Callable[..., object], *given: Any, **options: Any) -> None:
    """Assert that a metric raises a `ValueError` that matches `why`."""
    with pytest.raises(ValueError, match=why):
        measure(*given, **options)
