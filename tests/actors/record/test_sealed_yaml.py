"""A sealed run.yaml: every flipped bit and every cut is one clear error, and a person's edit is told from damage."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from moot.actors.record.folder import RunFolder
from moot.actors.record.run_yaml import EDITED, REMARKS, read_run_yaml
from moot.actors.record.sealed_yaml import check_seal, seal_yaml
from moot.actors.record.verify import verify
from moot.protocols.errors import RecordError

SETTINGS = {
    "schema_version": 1,
    "seed": 3,
    "settings": {"gate": {"tau_d": 0.35}},
    "price_table": {"m": {"input": 0.5, "output": 1.0}},
    "sessions": [{"wall_s": 1.5, "status": "finished"}],
}
WHOLE = seal_yaml(SETTINGS)
FIRST_LINE, LINES = WHOLE.split(b"\n", 1)
EARLIER = yaml.safe_dump(SETTINGS).encode()


def read(folder: Path, data: bytes) -> dict[str, object]:
    (folder / "run.yaml").write_bytes(data)
    return read_run_yaml(RunFolder(folder))


def edited(data: bytes) -> bytes:
    """The file with the word for the digits, as the error says."""
    return data[:8] + b"edited" + data[16:]


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert read(tmp_path, WHOLE) == SETTINGS
    found = verify(RunFolder(tmp_path))
    assert (found.faults, found.files, found.unchecked, found.remarks) == ([], 1, 0, [])


def test_every_flipped_bit_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    for bit in range(8 * len(WHOLE)):
        flipped = bytearray(WHOLE)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(RecordError, match=r"run\.yaml is damaged"):
            read(tmp_path, bytes(flipped))


def test_every_cut_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    for length in range(len(WHOLE)):
        with pytest.raises(RecordError, match=r"run\.yaml"):
            read(tmp_path, WHOLE[:length])


def test_an_edit_that_does_not_say_so_is_refused_with_both_ways_out(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"Restore it from a copy.* write edited for the eight digits"):
        read(tmp_path, WHOLE.replace(b"seed: 3", b"seed: 4"))


@pytest.mark.parametrize("end_of_line", [b"\n", b"\r\n"])
def test_an_edit_that_says_so_is_read_and_said(end_of_line: bytes, tmp_path: Path) -> None:
    mine = edited(WHOLE.replace(b"seed: 3", b"seed: 4")).replace(b"\n", end_of_line)
    assert read(tmp_path, mine) == SETTINGS | {"seed": 4, EDITED: True}
    found = verify(RunFolder(tmp_path))
    assert (found.faults, found.files, found.unchecked, found.remarks) == ([], 0, 0, [REMARKS[EDITED]])


def test_a_file_of_an_earlier_version_has_no_checksum(tmp_path: Path) -> None:
    assert read(tmp_path, EARLIER) == SETTINGS
    assert read(tmp_path, b"# mine\n" + EARLIER) == SETTINGS
    assert verify(RunFolder(tmp_path)).unchecked == 1


@pytest.mark.parametrize(
    "first_line",
    [
        b"",
        b"#",
        b"# mine",
        FIRST_LINE[:-1],
        FIRST_LINE + b" ",
        b"crc32 00000000",
        FIRST_LINE.replace(b"crc32 ", b"crc32 x"),
    ],
)
def test_a_first_line_that_moot_did_not_write_is_refused(first_line: bytes, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="its first line is no checksum"):
        check_seal(tmp_path / "run.yaml", first_line + b"\n" + LINES)


def test_a_file_that_lost_its_first_line_is_refused_however_it_is_written(tmp_path: Path) -> None:
    written_again = yaml.safe_dump(yaml.safe_load(LINES.replace(b"seed: 3", b"seed: 4"))).encode()
    for data in (LINES, b"# mine\n" + LINES, written_again):
        with pytest.raises(RecordError, match=r"its first line is no checksum.* begin the file with"):
            read(tmp_path, data)
