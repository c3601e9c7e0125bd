"""Text within a number of bytes: parts that find no room are counted, never just gone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from gate.model import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MOST = 200  # parts of one section, however much room there is: nobody reads more
LEAST = 1_000  # bytes that a part may take beyond its share, as long as there are any


def size(text: str) -> int:
    """Return how many bytes a text has."""
    return len(text.encode())


@dataclass(frozen=True, slots=True)
class Block:
    """A text in one or several forms.

    Attributes:
        forms: each renders one, the fullest first.
    """

    forms: Sequence[Callable[[], str]]
    weight: ClassVar[int] = 1

    def fit(self, share: int, left: int) -> str:
        """Return the fullest form within a share, else the barest within `left`, else no text."""
        text = ""
        for form in self.forms:
            text = form()
            if size(text) <= share:
                return text
        return text if size(text) <= left else ""


@dataclass(frozen=True, slots=True)
class Section:
    """Parts under a title, with a sentence about those that find no room.

    Attributes:
        lead: stands above the parts.
        parts: in the order in which they are shown and get their room.
        word: what one of those is that find no room, `more failing cell`.
        tail: stands below.
        weight: its share of the room, against those of the parts beside it.
    """

    lead: str
    parts: Sequence[Part]
    word: str
    tail: str = "\n"
    weight: int = 1

    def fit(self, share: int, left: int) -> str:
        """Return as much as a share holds; where that is too little, nothing but the sentence."""
        return self.fill(min(left, max(share, self._bare)))[0]

    def fill(self, limit: int) -> tuple[str, int]:
        """Return as much as `limit` bytes hold, and how many parts found no room.

        The text is empty where lead, sentence and tail find none.
        """
        left = limit - self._bare
        if left < 0:
            return "", len(self.parts)
        texts: list[str] = []
        shown = self.parts[:MOST]
        weights = sum(part.weight for part in shown)
        for part in shown:
            text = part.fit(max(left * part.weight // weights, min(left, LEAST)), left)
            if not text:
                break
            texts.append(text)
            left -= size(text)
            weights -= part.weight
        gone = len(self.parts) - len(texts)
        return "".join((self.lead, *texts, self._told(gone), self.tail)), gone

    @property
    def _bare(self) -> int:
        return size(self.lead + self._told(len(self.parts)) + self.tail)

    def _told(self, gone: int) -> str:
        return f"\n{counted(gone, self.word)}, in report.json\n" if gone else ""


@dataclass(frozen=True, slots=True)
class Choice:
    """The same parts in two orders.

    Attributes:
        whole: taken where all its parts find room.
        cut: taken elsewhere.
    """

    whole: Section
    cut: Section
    weight: ClassVar[int] = 1

    def fit(self, share: int, left: int) -> str:
        """Return as much as a share holds; where that is too little, nothing but the sentence."""
        text, gone = self.whole.fill(share)
        return self.cut.fit(share, left) if gone else text


Part: TypeAlias = Block | Section | Choice
