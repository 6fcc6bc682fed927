"""No pandas for the processes that tests start, as where the package is installed without extras.

So it is seen that nothing needs it, and each of them starts sooner: pyarrow imports pandas wherever it finds it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_INSTEAD = """\
import sys

if "ray.data" not in sys.modules:  # which needs it, and comes with it
    raise ModuleNotFoundError("No module named 'pandas'", name="pandas")
sys.path.remove({folder!r})
del sys.modules["pandas"]
import pandas
"""


@contextmanager
def no_pandas(folder: Path) -> Iterator[None]:
    """Processes that are started in the block find none.

    Args:
        folder: an empty one, for what they find instead.
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
