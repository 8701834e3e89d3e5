"""The bytes of a usage file: what is no log is refused whole, the rest comes as blocks of whole lines."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from gpupolicy.errors import UnreadableLog

BLOCK_BYTES = 16 * 2**20
_GZIP = b"\x1f\x8b"
_UTF8_MARK = b"\xef\xbb\xbf"
_MAGIC = {
    b"PAR1": ("parquet_file", "this is a Parquet file; export it as CSV"),
    b"ARROW1": ("arrow_file", "this is an Arrow file; export it as CSV"),
    b"PK\x03\x04": ("binary_file", "this is a zip archive or a spreadsheet; unpack it, or save it as CSV"),
    b"SQLite format 3": ("binary_file", "this is an SQLite database; export the table as CSV"),
    b"BZh": ("binary_file", "this is compressed with bzip2; unpack it, or use gzip"),
    b"\xfd7zXZ": ("binary_file", "this is compressed with xz; unpack it, or use gzip"),
    b"\x28\xb5\x2f\xfd": ("binary_file", "this is compressed with zstd; unpack it, or use gzip"),
    b"\xff\xfe": ("unsupported_encoding", "this is UTF-16; save it as UTF-8"),
    b"\xfe\xff": ("unsupported_encoding", "this is UTF-16; save it as UTF-8"),
}
_MARKUP = re.compile(rb"<(?:!doctype|html|\?xml|head|body)", re.IGNORECASE)
_TOOL_ERROR = re.compile(
    r"(?:\w*: )?(?:sacct|sacctmgr|sreport|squeue|slurm\w*): ?(?:error|fatal)|Invalid field requested"
    r"|slurm_\w+ error|Traceback \(most recent call last\)|(?:bash|sh|zsh|ssh|curl|wget|sudo|env): "
    r"|.{0,80}(?:command not found|Permission denied|Connection refused)$",
    re.IGNORECASE,
)


def refusal(path: Path, reason: str, explanation: str) -> UnreadableLog:
    """The error of a file that is refused whole: its name, the reason in one word, and what to do."""
    return UnreadableLog(f"{path}: {reason}: {explanation}")


def tool_error(path: Path, line: int, text: str) -> UnreadableLog | None:
    """The refusal of a file that holds a tool's complaint where a record should stand; None if it does not."""
    if not _TOOL_ERROR.match(text):
        return None
    said = text.strip()[:120]
    return refusal(path, "tool_error", f"line {line} is an error message, not a record ('{said}'); fetch it again")


def digest_of(path: Path) -> str:
    """SHA-256 of the file's bytes as they lie on disk."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as trouble:
        raise _unopened(path, trouble) from None


def head_of(path: Path) -> bytes:
    """The first bytes of a file, plain or gzip, without a mark or blanks before them: enough to tell its format."""
    return next(_raw_blocks(path, 2**16), b"").removeprefix(_UTF8_MARK).lstrip()


def text_blocks(path: Path, *, block_bytes: int = BLOCK_BYTES) -> Iterator[bytes]:
    """The text of a file, plain or gzip, in blocks that end where a line ends.

    Valid UTF-8 without a byte order mark and with plain line ends; bytes that are none are replaced, so that a
    few of them do not lose the file (trace meta-gcm-sacct). Raises UnreadableLog for what is no text.
    """
    kept: bytes | None = None
    for raw in _raw_blocks(path, block_bytes):
        if kept is None:
            _refuse_other_formats(path, raw)
            _refuse_json(path, raw)
            kept = b""
            raw = raw.removeprefix(_UTF8_MARK)  # noqa: PLW2901 - the mark is not part of the text
        end = raw.rfind(b"\n") + 1
        if end:
            yield _clean(b"".join((kept, memoryview(raw)[:end])))
        kept = raw[end:] if end else kept + raw
    if kept is None:
        raise refusal(path, "empty_file", "there is nothing in it; was the export cut off?")
    if kept:
        yield _clean(kept)


def json_chunks(path: Path, *, block_bytes: int = BLOCK_BYTES) -> Iterator[str]:
    """The text of a JSON file, plain or gzip, in chunks that may end anywhere; a byte order mark is taken off.

    Bytes that are no UTF-8 are replaced. Raises UnreadableLog for another format, a file without text among them.
    """
    decoder = codecs.getincrementaldecoder("utf-8-sig")(errors="replace")
    is_first = True
    for raw in _raw_blocks(path, block_bytes):
        if is_first:
            _refuse_other_formats(path, raw)
            is_first = False
        yield decoder.decode(raw)
    if is_first:
        raise refusal(path, "empty_file", "there is nothing in it; was the export cut off?")
    yield decoder.decode(b"", final=True)


def _raw_blocks(path: Path, block_bytes: int) -> Iterator[bytes]:
    try:
        with path.open("rb") as plain:
            is_gzip = plain.read(len(_GZIP)) == _GZIP
            plain.seek(0)
            file = cast(BinaryIO, gzip.GzipFile(fileobj=plain)) if is_gzip else plain
            while raw := file.read(block_bytes):
                yield raw
    except EOFError:
        raise refusal(path, "truncated", "the gzip stream ends in the middle; fetch the whole file again") from None
    except (gzip.BadGzipFile, zlib.error) as trouble:
        raise refusal(path, "damaged_file", f"the gzip stream is damaged ({trouble}); fetch it again") from None
    except OSError as trouble:
        raise _unopened(path, trouble) from None


def _unopened(path: Path, trouble: OSError) -> UnreadableLog:
    return refusal(path, "not_readable", f"{trouble.strerror or trouble}; check the name and the permissions")


def _refuse_other_formats(path: Path, head: bytes) -> None:
    for magic, (reason, explanation) in _MAGIC.items():
        if head.startswith(magic):
            raise refusal(path, reason, explanation)
    if b"\0" in head[: 2**16]:
        raise refusal(path, "binary_file", "this is not text; give a log as text")
    start = head.removeprefix(_UTF8_MARK).lstrip()
    if not start and len(head) < BLOCK_BYTES:
        raise refusal(path, "empty_file", "there are only blanks in it; was the export cut off?")
    if _MARKUP.match(start):
        raise refusal(path, "html_page", "this is an HTML or XML page, perhaps a log-in form; fetch the log itself")


def _refuse_json(path: Path, head: bytes) -> None:
    if head.removeprefix(_UTF8_MARK).lstrip()[:1] in (b"{", b"["):
        raise refusal(path, "json_document", "this is JSON; give the text with one record a line")


def _clean(block: bytes) -> bytes:
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n")
    if block.isascii():
        return block
    try:
        block.decode()
    except UnicodeDecodeError:
        return block.decode(errors="replace").encode()
    return block
