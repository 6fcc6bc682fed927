"""Environment without pandas for processes that tests start, as in an installation without extras.

Tests that nothing needs pandas, and makes processes start faster: pyarrow imports pandas if it is installed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_INSTEAD = """\
import sys

if "ray.data" not in sys.modules:  # which needs and installs pandas
    raise ModuleNotFoundError("No module named 'pandas'", name="pandas")
sys.path.remove({folder!r})
del sys.modules["pandas"]
import pandas
"""


@contextmanager
def no_pandas(folder: Path) -> Iterator[None]:
    """Context in which started processes cannot import pandas, except with Ray Data.

    Args:
        folder: an empty folder, for the replacement module.
    """
    (folder / "pandas.py").write_text(_INSTEAD.format(folder=str(folder)))
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(folder), before]))
    try:
        yield
    finally:
        os.environ.pop("PYTHONPATH")
        if before is not None:
            os.environ["PYTHONPATH"] = before
