"""Files of untrusted folders: what is no regular file is refused without waiting, and a large one before it is read."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from moot.protocols.regular_files import map_regular, open_regular, read_regular


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(path.name)


def _link_to_a_pipe(path: Path) -> None:
    os.mkfifo(path.with_name("pipe"))
    path.symlink_to("pipe")


STRANGE: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "socket": _socket,
    "folder": os.mkdir,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "link to a pipe": _link_to_a_pipe,
    "link to itself": lambda path: path.symlink_to(path.name),
    "nothing": lambda path: None,
}


@pytest.mark.parametrize("kind", STRANGE)
def test_what_is_no_regular_file_is_refused_at_once(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    STRANGE[kind](tmp_path / "x")
    for read in (open_regular, map_regular):
        with pytest.raises(OSError, match=r".") as refused:
            read(tmp_path / "x")
        assert refused.value.strerror


def test_a_large_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    file = tmp_path / "sparse"
    with file.open("wb") as written:
        written.truncate(2**40)
    with pytest.raises(OSError, match="larger than 1 MiB") as refused:
        read_regular(file, 2**20)
    assert refused.value.errno == errno.EFBIG


def test_a_file_whose_size_is_not_known_is_read_within_the_bound() -> None:
    assert b"VmRSS" in read_regular("/proc/self/status", 2**20)
    with pytest.raises(OSError, match="larger than 1,024 bytes"):
        read_regular("/proc/self/smaps", 2**10)


def test_content_is_unchanged(tmp_path: Path) -> None:
    file = tmp_path / "x"
    for content in (b"", b"abc"):
        file.write_bytes(content)
        assert read_regular(file, 3) == bytes(map_regular(file)) == content
