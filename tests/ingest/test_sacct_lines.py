"""Records in lines: headers, delimiters inside fields, records broken over lines, blocks."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpupolicy.errors import UnreadableLog
from gpupolicy.ingest import Reading, read_slurm
from gpupolicy.ingest.records import Layout, read_batches
from gpupolicy.ingest.slurm.lines import mend_sacct
from gpupolicy.ingest.text import text_blocks

Sacct = Callable[..., Reading]

NAMED = "JobID|Account|JobName|State|Submit|Start|End|AllocTRES\n"
STAMPS = "2026-01-05T00:00:00|2026-01-05T00:00:00|2026-01-05T01:00:00"
TWICE_TIMED = "JobID|JobName|State|Submit|Start|End|Elapsed|AllocTRES|Comment\n"


def names(reading: Reading) -> list[tuple[object, ...]]:
    return reading.runs.select("workload_id", "account", "gpus").rows()


def test_one_column_of_free_text_takes_the_surplus_delimiters(sacct: Sacct) -> None:
    reading = sacct(f"{NAMED}1|a|x|y||z|COMPLETED|{STAMPS}|gres/gpu=2\n2|a||FAILED|{STAMPS}|gres/gpu=4\n")

    assert names(reading) == [("1", "a", 2), ("2", "a", 4)]


def test_two_columns_of_free_text_leave_the_surplus_unproven(sacct: Sacct) -> None:
    line = f"1|a|x|y|COMPLETED|{STAMPS}|gres/gpu=1|p|q"
    reading = sacct(f"{NAMED.strip()}|Comment\n{line}\n2|a|b|COMPLETED|{STAMPS}|gres/gpu=1|fine\n")

    assert names(reading) == [("2", "a", 1)]
    assert reading.rejected.select("line", "reason", "text").rows() == [(2, "wrong_field_count", line)]


@pytest.mark.parametrize(("elapsed", "accepted"), [("01:00:00", 1), ("00:59:00", 0)])
def test_two_columns_of_free_text_are_parted_if_the_elapsed_time_confirms_it(
    sacct: Sacct, elapsed: str, accepted: int
) -> None:
    reading = sacct(f"{TWICE_TIMED}1|x|y|COMPLETED|{STAMPS}|{elapsed}|gres/gpu=2|minrt=900 | odd\n")

    assert reading.accepted == accepted
    assert reading.rejected.height == 1 - accepted


def test_a_job_name_that_plays_a_record_makes_it_unproven(sacct: Sacct) -> None:
    forged = f"x|COMPLETED|{STAMPS}|01:00:00|gres/gpu=0|free"
    reading = sacct(f"{TWICE_TIMED}1|{forged}|COMPLETED|{STAMPS}|01:00:00|gres/gpu=8|c\n")

    assert reading.runs.is_empty()
    assert reading.rejected["reason"].to_list() == ["wrong_field_count"]


def test_a_contract_that_may_be_anothers_words_is_not_taken(sacct: Sacct) -> None:
    header = "JobID|State|Submit|Start|End|Elapsed|AllocTRES|Comment|AdminComment\n"
    row = f"1|COMPLETED|{STAMPS}|01:00:00|gres/gpu=2|"

    assert sacct(f"{header}{row}a|b|c\n").accepted == 1
    assert sacct(f"{header}{row}a|gpu_util=99|gpu_util=3\n").accepted == 0


def test_a_record_broken_over_lines_is_one_record(sacct: Sacct) -> None:
    reading = sacct(f"{NAMED}1|a|two\n\nlines|COMPLETED|{STAMPS}|gres/gpu=2\n2|a|b|FAILED|{STAMPS}|gres/gpu=4\n")

    assert names(reading) == [("1", "a", 2), ("2", "a", 4)]
    assert reading.runs["line"].to_list() == [2, 5]
    assert reading.rows_read == 2


def test_a_comment_at_the_end_of_a_line_may_go_on_in_the_next(sacct: Sacct) -> None:
    header = "JobID|Submit|Start|End|AllocTRES|Comment\n"
    reading = sacct(f"{header}1|{STAMPS}|gres/gpu=2|first\nminrt=60\n2|{STAMPS}|gres/gpu=2|minrt=0\n")

    assert reading.runs["minimum_runtime_s"].to_list() == [60, 0]
    assert reading.runs["is_charged"].to_list() == [True, False]


def test_a_line_break_in_a_field_that_cannot_hold_one_is_rejected(sacct: Sacct) -> None:
    reading = sacct(f"{NAMED}1|vis\nion|x|COMPLETED|{STAMPS}|gres/gpu=2\n2|a|b|FAILED|{STAMPS}|gres/gpu=4\n")

    assert names(reading) == [("2", "a", 4)]
    assert reading.rejected["line"].to_list() == [2, 3]


def test_fragments_between_good_rows_are_rejected_one_by_one(sacct: Sacct) -> None:
    good = f"{{}}|a|b|FAILED|{STAMPS}|gres/gpu=4\n"
    reading = sacct(f"{NAMED}{good.format(1)}2|a|b\n3|a\n{good.format(4)}")

    assert [job for job, *_ in names(reading)] == ["1", "4"]
    assert reading.rejected.select("line", "text").rows() == [(3, "2|a|b"), (4, "3|a")]
    assert reading.rows_read == 4


def test_trailing_delimiters_blank_lines_and_repeated_headers_are_no_records(sacct: Sacct) -> None:
    header = "JobID|Submit|Start|End|AllocTRES|\n"
    row = f"{{}}|{STAMPS}|gres/gpu=2|\n"
    reading = sacct(f"{header}{row.format(1)}\n   \n{header}{row.format(2)}")

    assert reading.runs["workload_id"].to_list() == ["1", "2"]
    assert reading.ignored.rows() == [("repeated_header", 1, 5)]


def test_steps_are_ignored_before_anything_else_about_them(sacct: Sacct) -> None:
    reading = sacct(f"{NAMED}1|a|x|FAILED|{STAMPS}|gres/gpu=1\n1.batch|a|batch|FAILED|no|time|here|gres/gpu=1\n")

    assert reading.accepted == 1
    assert reading.ignored.rows() == [("step_row", 1, 3)]


def test_line_ends_of_windows_and_a_byte_order_mark_do_not_show(sacct: Sacct) -> None:
    reading = sacct(f"\ufeff{NAMED}1|a|x|FAILED|{STAMPS}|gres/gpu=3\n".replace("\n", "\r\n"))

    assert names(reading) == [("1", "a", 3)]


def test_bytes_that_are_no_text_lose_neither_the_file_nor_the_row(sacct: Sacct) -> None:
    reading = sacct(f"{NAMED}1|a|".encode() + b"\xff\xfe" + f"|FAILED|{STAMPS}|gres/gpu=3\n".encode())

    assert names(reading) == [("1", "a", 3)]


def test_a_field_asked_for_twice_is_read_once(sacct: Sacct) -> None:
    reading = sacct(f"JobID|Submit|Start|End|AllocTRES|End\n1|{STAMPS}|gres/gpu=3|2026-01-05T01:00:00\n")

    assert reading.runs["ended_at"].dt.hour().to_list() == [1]


def test_a_dump_without_a_header_is_read_by_the_names_given(sacct: Sacct) -> None:
    text = f"1|{STAMPS}|gres/gpu=3\n2|{STAMPS}|gres/gpu=4\n"
    reading = sacct(text, fields=["jobid", "submit", "start", "end", "alloctres"])

    assert reading.runs.select("workload_id", "gpus", "line").rows() == [("1", 3, 1), ("2", 4, 2)]
    with pytest.raises(UnreadableLog, match="wrong_field_count: 2 fields were named, line 1 has 5"):
        sacct(text, fields=["JobID", "Submit"])


def test_words_of_an_error_inside_a_job_name_do_not_lose_the_file(sacct: Sacct) -> None:
    good = f"{{}}|a|b|FAILED|{STAMPS}|gres/gpu=4\n"
    reading = sacct(f"{NAMED}{good.format(1)}sacct: error: not really\n{good.format(2)}")

    assert [job for job, *_ in names(reading)] == ["1", "2"]
    assert reading.rejected["text"].to_list() == ["sacct: error: not really"]


# Whatever the order and the delimiter

FIELDS = {
    "Account": "lab", "User": "ada", "State": "COMPLETED", "Submit": "2026-01-05T00:00:00",
    "Eligible": "2026-01-05T00:00:00", "Start": "2026-01-05T00:30:00", "End": "2026-01-05T01:00:00",
    "ElapsedRaw": "1800", "AllocTRES": "gres/gpu:h100=2,gres/gpu=2", "JobName": "train", "QOS": "funded",
}  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(
    order=st.permutations(["JobID", *FIELDS]),
    delimiter=st.sampled_from(["|", "\x1f", "|#", "\t", ";", "@@", "^"]),
    has_trailing=st.booleans(),
    is_gzip=st.booleans(),
    name=st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters="|#;@^"), max_size=8),
)
def test_good_rows_survive_any_order_of_fields_and_any_delimiter(
    tmp_path_factory: pytest.TempPathFactory,
    order: list[str],
    delimiter: str,
    *,
    has_trailing: bool,
    is_gzip: bool,
    name: str,
) -> None:
    end = (delimiter if has_trailing else "") + "\n"
    jobs = [FIELDS | {"JobID": str(job), "JobName": name} for job in range(1, 4)]
    rows = [delimiter.join(job[field] for field in order) + end for job in jobs]
    text = (delimiter.join(order) + end + "".join(rows)).encode()
    path = tmp_path_factory.mktemp("sacct") / "log"
    path.write_bytes(gzip.compress(text) if is_gzip else text)

    reading = read_slurm(path, cluster="c")

    assert reading.rejected.is_empty()
    assert reading.runs.select("workload_id", "account", "user_name", "gpus", "gpu_type", "is_charged").rows() == [
        (str(job), "lab", "ada", 2, "h100", True) for job in range(1, 4)
    ]


PIECE = st.text(st.characters(exclude_characters="|\n\r\0", exclude_categories=["Cs"]), max_size=5)


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.tuples(st.integers(0, 99).map(str), PIECE, PIECE), min_size=1, max_size=20))
def test_whole_columns_hold_what_splitting_line_by_line_gives(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, str]]
) -> None:
    path = tmp_path_factory.mktemp("twin") / "log"
    path.write_bytes("".join("|".join(row) + "\n" for row in rows).encode())
    layout = Layout(("JobID", "JobName", "Account"), "|")

    blocks = text_blocks(path)
    frame = pl.concat(b.frame for b in read_batches(path, blocks, layout=layout, first_line=1, mend=mend_sacct))

    assert frame.rows() == [(*(piece or None for piece in row), at) for at, row in enumerate(rows, start=1)]


LINES = st.lists(
    st.sampled_from(
        [
            f"1|{STAMPS}|n|gres/gpu=1",
            f"2|{STAMPS}|a|b|gres/gpu=1",
            f"3|{STAMPS}|two",
            "lines|gres/gpu=1",
            "4|x",
            "",
            "tail",
        ]
    ),
    min_size=1,
    max_size=30,
)


@settings(max_examples=80, deadline=None)
@given(lines=LINES, block_bytes=st.integers(40, 400))
def test_blocks_make_no_difference(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], block_bytes: int
) -> None:
    path = tmp_path_factory.mktemp("blocks") / "log"
    path.write_text("\n".join(lines) + "\nend|a|b|c|d|e\n")
    layout = Layout(("JobID", "Submit", "Start", "End", "JobName", "AllocTRES"), "|")

    def read(size: int) -> tuple[list[object], list[object]]:
        blocks = text_blocks(path, block_bytes=size)
        batches = list(read_batches(path, blocks, layout=layout, first_line=1, mend=mend_sacct))
        frames = pl.concat(batch.frame for batch in batches).rows()
        return frames, pl.concat(batch.rejected for batch in batches).rows()

    assert read(block_bytes) == read(10**6)


def test_a_record_broken_at_the_border_of_two_blocks_is_whole(tmp_path: Path) -> None:
    row = f"7|a|two\nlines|COMPLETED|{STAMPS}|gres/gpu=1\n"
    text = NAMED + row * 2000
    path = tmp_path / "log"
    path.write_text(text)
    layout = Layout(tuple(NAMED.strip().split("|")), "|")

    blocks = text_blocks(path, block_bytes=1000)
    batches = list(read_batches(path, blocks, layout=layout, first_line=1, mend=mend_sacct))

    assert sum(batch.frame.height for batch in batches) == 2001
    assert sum(batch.rejected.height for batch in batches) == 0
