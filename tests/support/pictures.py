"""Pictures drawn for tests."""

from __future__ import annotations

import io
from typing import Any

from PIL import Image as Pillow


def picture(kind: str = "PNG", size: tuple[int, int] = (20, 10), mode: str = "RGB", **options: Any) -> bytes:
    written = io.BytesIO()
    drawn = Pillow.new(mode, size, 0)
    drawn.putpixel((0, 0), 255 if len(drawn.getbands()) == 1 else (255,) * len(drawn.getbands()))
    drawn.save(written, kind, **options)
    return written.getvalue()
