"""What `moot verify` checks of a folder besides a run: a server's accepted requests, and libraries of documents."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from moot.actors.record.folder import RunFolder
from moot.actors.record.run_yaml import read_run_yaml
from moot.actors.record.store.mirror import display_name, with_uris
from moot.actors.retrieval.library_folder import LibraryFolder
from moot.actors.retrieval.verify import verify_library
from moot.deploy.results.text import visible_line
from moot.deploy.runs.run_library import recorded_library
from moot.deploy.service.inbox_files import inbox_folder
from moot.deploy.service.verify_inbox import InboxReport, has_inbox, verify_inbox
from moot.protocols.errors import RecordError

_SHOWN = 20


def runs_in(folder: Path) -> list[Path]:
    """Runs that are verified with a folder: all of a server's, none of a library's, else the folder itself."""
    if RunFolder(folder).exists():
        return [folder]
    if has_inbox(folder):
        return sorted({file.parent for name in ("run.yaml", "epochs.json") for file in folder.glob(f"*/{name}")})
    return [] if LibraryFolder(folder).exists() else [folder]


def verify_others(folder: Path, runs: list[Path]) -> bool:
    """Verify and print what is no run: the inbox of a server, and the libraries of the runs.

    Returns:
        Whether anything is damaged.
    """
    damaged = False
    if not RunFolder(folder).exists() and has_inbox(folder):
        damaged = is_damaged(inbox_folder(folder), lambda _: _print_inbox(folder, verify_inbox(folder)))
    libraries = [folder] if not runs else [library for run in runs if (library := _library_of(run)) is not None]
    for library in dict.fromkeys(each for each in libraries if runs or LibraryFolder(each).exists()):
        damaged = is_damaged(library, _verify_library) or damaged
    return damaged


def is_damaged(folder: Path, verify: Callable[[Path], bool]) -> bool:
    """Verify one of several folders: what cannot be read is damaged, and ends the verification of no other one.

    Args:
        folder: the folder.
        verify: prints its report, and returns whether it is damaged.
    """
    try:
        return verify(folder)
    except RecordError as error:
        print(f"{display_name(folder)}: damaged")
        print(f"  {visible_line(with_uris(str(error)))}")
        return True


def _library_of(run: Path) -> Path | None:
    """Library of a run; its own one counts from the first debate on, also if its library.json is lost."""
    try:
        content = read_run_yaml(RunFolder(run))
    except RecordError:
        return None  # that is one of the run's faults
    has_begun = any(True for place in ("journal", "parts") for _ in (run / place).glob("e*"))
    own = run / "library"
    is_own = has_begun and content.get("library") == own.name
    return own if is_own else recorded_library(content, run)


def _print_inbox(server: Path, report: InboxReport) -> bool:
    unchecked = ", one of an earlier version without checksums" if report.unchecked else ""
    print(f"{display_name(inbox_folder(server))}: {'damaged' if report.faults else 'whole'}")
    print(f"  {report.files:,} files compared with their checksums{unchecked}")
    print(f"  {', '.join(f'{state} {report.requests[state]:,}' for state in ('pending', 'cancelled', 'lost'))}")
    for fault in report.faults:
        print(f"  {visible_line(fault)}")
    if report.faults:
        print("Start the server: it resumes what is intact, and names what is lost to whoever asks for it")
    if report.lost:
        shown = ", ".join(f"{key.kind}/{key.id}" for key in report.lost[:_SHOWN])
        print(f"  lost earlier, and to be sent again: {shown}{', ...' if len(report.lost) > _SHOWN else ''}")
    if report.lost_ids:
        print("  accepted requests were lost whose ids are unknown")
    return bool(report.faults)


def _verify_library(folder: Path) -> bool:
    report = verify_library(folder)
    unchecked = f", {report.unchecked:,} of an earlier version without checksums" if report.unchecked else ""
    print(f"{display_name(folder)}: {'damaged' if report.faults else 'whole'}")
    print(f"  {report.files:,} files compared with their checksums{unchecked}")
    if report.chunks:
        print(f"  chunks {report.chunks:,}, embedded {report.embedded:,}")
    for fault in report.faults:
        print(f"  {visible_line(fault)}")
    if report.advice:
        print(report.advice)
    return bool(report.faults)
