"""The text of a JSON file, read value by value, so that a large one is never in memory as a whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from gpupolicy.errors import UnreadableLog
from gpupolicy.ingest.text import BLOCK_BYTES, json_chunks, refusal, tool_error

_BLANKS = " \t\r\n"
_LONGEST_TOKEN = 32  # of numbers, escapes and words: an error that near to the end may come from the cut there


class Value(NamedTuple):
    """A value, the text it stands in, and the line in which that begins."""

    value: Any
    text: str
    line: int


class JsonText:
    """Where in the file we are. More text is fetched as it is needed; what was taken is forgotten.

    Raises UnreadableLog for what is no JSON, with the line, and for a file that breaks off.
    """

    def __init__(self, path: Path, *, block_bytes: int = BLOCK_BYTES) -> None:
        self._path = path
        self._chunks = json_chunks(path, block_bytes=block_bytes)
        self._decoder = json.JSONDecoder()
        self._text, self._at, self._line = "", 0, 1

    def peek(self) -> str:
        """The next character that is no blank; "" at the end."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in _BLANKS:
                self._line += self._text[self._at] == "\n"
                self._at += 1
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._fetch():
                return ""

    def take(self, allowed: str) -> str:
        """The next character, which has to be one of those."""
        found = self.peek()
        if not found or found not in allowed:
            raise self._fault(f"'{allowed[0]}' is missing", is_cut=not found)
        self._at += 1
        return found

    def value(self) -> Value:
        """The value that begins here, whole."""
        self.peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except json.JSONDecodeError as trouble:
                is_cut = trouble.pos > len(self._text) - _LONGEST_TOKEN or trouble.msg.startswith("Unterminated")
                if not is_cut or not self._fetch():
                    raise self._fault(trouble.msg, is_cut=is_cut, at=trouble.pos) from None
            else:
                if not self._may_go_on(end) or not self._fetch():
                    return self._taken(value, end)

    def members(self) -> Iterator[str]:
        """The keys of the object that begins here. Take the value of each before the next key."""
        self.take("{")
        while self.peek() != "}":
            yield str(self._key())
            if self.take(",}") == "}":
                return
        self.take("}")

    def elements(self) -> Iterator[Value]:
        """The values of the list that begins here."""
        self.take("[")
        while self.peek() != "]":
            yield self.value()
            if self.take(",]") == "]":
                return
        self.take("]")

    def rest_of_line(self) -> str:
        self.peek()
        return self._text[self._at :].partition("\n")[0]

    def _key(self) -> str:
        key = self.value().value
        self.take(":")
        self.peek()
        return str(key)

    def _may_go_on(self, end: int) -> bool:
        """Whether the next chunk may go on with what looks like a whole number: 12 with .5, or 12. with 5."""
        return len(self._text) - end < _LONGEST_TOKEN and not self._text[end:].strip("0123456789.eE+-")

    def _taken(self, value: object, end: int) -> Value:
        taken = Value(value, self._text[self._at : end], self._line)
        self._line += taken.text.count("\n")
        self._at = end
        return taken

    def _fetch(self) -> bool:
        chunk = next(self._chunks, None)
        if chunk is None:
            return False
        self._text, self._at = self._text[self._at :] + chunk, 0
        return True

    def _fault(self, message: str, *, is_cut: bool, at: int | None = None) -> UnreadableLog:
        at = self._at if at is None else at
        line = self._line + self._text.count("\n", self._at, at)
        text = self._text[self._text.rfind("\n", 0, at) + 1 :].partition("\n")[0].strip()
        if complaint := tool_error(self._path, line, text):
            return complaint
        if is_cut:
            return refusal(self._path, "truncated", f"the JSON breaks off in line {line}; fetch the whole file again")
        return refusal(self._path, "damaged_file", f"line {line} is no JSON ({message}: '{text[:60]}'); fetch it again")
