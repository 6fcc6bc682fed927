"""What a measure says of input that cannot be measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def refuses(why: str, measure: Callable[..., object], *given: Any, **options: Any) -> None:
    """A measure refuses what it is given, with a `ValueError` that matches `why`."""
    with pytest.raises(ValueError, match=why):
        measure(*given, **options)
