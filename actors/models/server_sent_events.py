"""Server-sent events, from the bytes of a stream to the data of each event."""

from __future__ import annotations

from collections.abc import Iterator


class EventParser:
    """Cuts a stream into events, however its bytes were split on the way.

    Lines may end in LF, CR or CRLF. Comments and the fields `event`, `id` and `retry` are passed over; several `data`
    lines of one event are joined by a line feed. What follows the last empty line of a stream that was cut is no event.
    """

    def __init__(self) -> None:
        self._line: list[bytes] = []
        self._data: list[bytes] = []
        self._after_cr = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The data of each event that `chunk` completes, in order."""
        if self._after_cr and chunk[:1] == b"\n":
            chunk, self._after_cr = chunk[1:], False
        if chunk:
            self._after_cr = chunk[-1:] == b"\r"
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        first, *others = chunk.split(b"\n")
        self._line.append(first)
        if not others:
            return
        for line in (b"".join(self._line), *others[:-1]):
            if line:
                self._take(line)
            elif self._data:
                data, self._data = self._data, []
                yield data[0] if len(data) == 1 else b"\n".join(data)
        self._line = [others[-1]]

    def _take(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        if field == b"data":
            self._data.append(value.removeprefix(b" "))
