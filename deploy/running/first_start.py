"""What becomes of a run's folder when its engine cannot be started."""

from __future__ import annotations

from moot.actors.record.folder import RunFolder
from moot.deploy.running.prepare import Prepared


def leaves_nothing(folder: RunFolder, prepared: Prepared) -> bool:
    """Whether a first start that fails takes the folder away again: it was made just now, and will hold no library,
    whose vectors are paid for before the engine starts. Ask it as the owner, before anything is written.

    Raises:
        RecordError: the folder cannot be read.
    """
    return prepared.docs is None and folder.is_new()
