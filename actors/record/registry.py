"""Which cases a writer has debates of, what is right in them, and what it need not keep in mind of them any longer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from moot.actors.record.arrivals import Arrivals
from moot.actors.record.put_aside import PutAside
from moot.actors.record.read_back import ReadBack
from moot.actors.record.schema import CaseKey
from moot.actors.record.signal_keeper import SignalKeeper
from moot.protocols.case import LabelledCase, Reference, is_shared_id

_MAX_ATTEMPTS = 16


class Right(NamedTuple):
    """What is right in a case that is being debated, and the number of its registering.

    Attributes:
        is_reply: whether the case is a reply to judge, to which no answer is a verdict without mistake.
    """

    gold: str | None
    reference: Reference
    is_reply: bool
    number: int


class Registry:
    """The cases of one writer.

    A debate that was put aside without a verdict is forgotten after a while; when its case comes again, what is
    recorded of it is read back before its next row is taken.

    Args:
        arrivals: what has come of each debate.
        signals: gives what the writer keeps of signals.
        read_back: reads the record.
    """

    def __init__(self, arrivals: Arrivals, signals: Callable[[], SignalKeeper], read_back: ReadBack) -> None:
        self._arrivals, self._signals, self._read_back = arrivals, signals, read_back
        self._right: dict[str, Right] = {}
        self._aside = PutAside()
        self._unheard: set[CaseKey] = set()

    def recover(self, *, all_stay: bool) -> None:
        """Whatever earlier lives have left without verdict is put aside until its case is registered.

        Args:
            all_stay: whether all of it stays in mind until `all_known`: rows of such a life may come again.
        """
        unfinished = [key for key in self._arrivals.unfinished() if not is_shared_id(key[0])]
        self._aside.add(case_id for case_id, _ in unfinished)
        self._unheard = set(unfinished)
        self._aside.all_stay = all_stay

    async def register(self, cases: Sequence[LabelledCase], number: int) -> None:
        """See `Recorder.register`."""
        await self._bring_back([labelled.case.id for labelled in cases])
        for labelled in cases:
            case_id = labelled.case.id
            self._aside.take_back(case_id)
            self._right[case_id] = Right(labelled.gold, labelled.reference, labelled.case.judged is not None, number)
            for key in _attempts_at(case_id):
                if (debate := self._arrivals.known(key)) is not None:
                    debate.arrived.set()

    def all_known(self) -> None:
        """Every case that is being debated has been registered: what else an earlier life has left may be forgotten."""
        self._aside.all_stay = False

    def knows(self, case_id: str) -> bool:
        """Whether it is known what is right in a case."""
        return case_id in self._right

    def end(self, case_id: str) -> Right:
        """What is right in a case that has its verdict now, and is debated no more."""
        return self._right.pop(case_id, Right(None, Reference(), False, 0))

    async def _bring_back(self, case_ids: Sequence[str]) -> None:
        for case_id in case_ids:
            self._aside.take_back(case_id)
        keys = [key for case_id in case_ids for key in _attempts_at(case_id) if self._is_out_of_mind(key)]
        if not keys:
            return
        for key, known in (await self._read_back.reopened(keys)).items():
            if self._is_out_of_mind(key):  # nobody else was faster
                self._signals().bring_back(key, known.signals)
                self._unheard.discard(key)
            if self._arrivals.is_forgotten(key):
                self._arrivals.bring_back(key, known.reply_ids, known.events)

    def _is_out_of_mind(self, key: CaseKey) -> bool:
        """Whether a debate was forgotten, or begun in an earlier life: its log-probabilities are not here."""
        return self._arrivals.is_forgotten(key) or key in self._unheard

    def forget(self, numbered: Iterable[tuple[int, str]]) -> None:
        """See `Recorder.forget`."""
        for number, case_id in numbered:
            if (right := self._right.get(case_id)) is not None and right.number <= number:
                self._aside.add([case_id])
        self._tidy()

    def came(self, keys: Iterable[CaseKey]) -> None:
        """Rows of these debates were taken: what comes of one after it was forgotten is forgotten in its turn."""
        for key in keys:
            if self._arrivals.is_forgotten(key):
                self._aside.add([key[0]])
        self._tidy()

    def _tidy(self) -> None:
        for case_id in self._aside.over():
            self._right.pop(case_id, None)
            for key in _attempts_at(case_id):
                self._arrivals.forget(key)
                self._signals().forget(key)
                self._unheard.discard(key)


def _attempts_at(case_id: str) -> Iterator[CaseKey]:
    return ((case_id, attempt) for attempt in range(_MAX_ATTEMPTS))
