"""One local Ray for the whole session, and the folders whose support modules tests and Ray's workers import."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SUPPORT = str(Path(__file__).parent / "actors")
sys.path.insert(0, SUPPORT)


@pytest.fixture(scope="session")
def local_ray() -> Iterator[None]:
    """A local Ray of two CPUs; its workers find the support modules, too."""
    import ray

    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [SUPPORT, before]))
    ray.init(
        address="local",
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="error",
        object_store_memory=200 * 2**20,
    )
    yield
    ray.shutdown()
    if before is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = before
