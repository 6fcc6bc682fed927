"""Verification of a server's accepted requests, without changing anything."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from moot.deploy.service.earlier_inbox import EarlierInbox
from moot.deploy.service.inbox_files import IDS, REQUESTS, inbox_folder, merge, read_changes
from moot.deploy.service.request_queue import Key, RequestQueue


@dataclass
class InboxReport:
    """Report of a verification.

    Attributes:
        faults: one line per fault; empty if there are none.
        files: number of files compared with their checksums.
        unchecked: number of files of an earlier version without checksums.
        requests: number of requests by state.
        lost: requests that a server has found to be lost, and that were not sent again.
        lost_ids: whether a server has found that ids of requests are lost, too.
    """

    faults: list[str] = field(default_factory=list)
    files: int = 0
    unchecked: int = 0
    requests: Counter[str] = field(default_factory=Counter)
    lost: list[Key] = field(default_factory=list)
    lost_ids: bool = False


def has_inbox(server: Path) -> bool:
    """Whether a folder is a server's."""
    return inbox_folder(server).is_dir() or EarlierInbox(server).exists()


def verify_inbox(server: Path) -> InboxReport:
    """Verifies the accepted requests of a server that is not running.

    Args:
        server: its folder, with `inbox/`.

    Raises:
        RecordError: a file cannot be read.
    """
    folder = inbox_folder(server)
    # The ids first: of a server that runs all the same, they must not be newer than the requests.
    ids = read_changes(folder / IDS)
    requests = read_changes(folder / REQUESTS)
    merged = merge(requests, ids)
    report = InboxReport(requests.damage + ids.damage, lost_ids=merged.lost_ids)
    for name, content, other in ((REQUESTS, requests, ids), (IDS, ids, requests)):
        if content.begin is None and not content.changes and other.changes:
            report.faults.append(f"{folder / name} is missing or empty: the server writes it again from the other file")
    report.files = sum(content.begin is not None or bool(content.changes) for content in (requests, ids))
    report.unchecked = int(EarlierInbox(server).exists())
    newly: list[Key] = []
    for key, entry in RequestQueue(merged.changes).entries.items():
        report.requests[entry.state] += 1
        if entry.state == "lost":
            (newly if entry.is_newly_lost else report.lost).append(key)
    report.faults += [f"{folder}: the accepted request {key.kind}/{key.id} is lost" for key in newly]
    if merged.newly_lost_ids:
        report.faults.append(f"{folder}: accepted requests are lost, and neither file has their ids")
    return report
