"""A Ray that moot starts answers this machine only."""

from __future__ import annotations

import json
import subprocess
import sys
from ipaddress import ip_address

import pytest

LISTENS = """
import json, os, psutil
from moot.actors.remote.joining import Membership
joined = Membership(None)
joined.join()
try:
    ours = [psutil.Process(), *psutil.Process().children(recursive=True)]
    found = [each.laddr.ip for one in ours for each in one.net_connections("inet") if each.status == "LISTEN"]
    print(json.dumps([found, os.environ.get("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER")]))
finally:
    joined.leave()
print(json.dumps(os.environ.get("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER")))
"""


@pytest.mark.slow
def test_a_local_ray_listens_on_loopback() -> None:
    done = subprocess.run([sys.executable, "-c", LISTENS], capture_output=True, text=True, timeout=120, check=True)
    first, last = done.stdout.splitlines()[-2:]
    addresses, _ = json.loads(first)
    assert len(addresses) > 3
    loose = [each for each in addresses if not _loopback(each)]
    assert loose == []
    assert json.loads(last) is None


def _loopback(address: str) -> bool:
    found = ip_address(address)
    return (getattr(found, "ipv4_mapped", None) or found).is_loopback
