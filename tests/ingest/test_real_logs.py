"""Real logs of other sites: their published figures come out."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from gpupolicy.ingest import load_mapping, read_slurm, read_table

HELD_GPU_H = (pl.col("ended_at") - pl.col("started_at")).dt.total_milliseconds() * pl.col("gpus") / 3_600_000
HAS_RUN = pl.col("ended_at") > pl.col("started_at")


def top_ten(reference: dict[str, object]) -> dict[str, float]:
    listed = reference["gpu_hours_by_vc_top10"]
    assert isinstance(listed, list)
    return {one["vc"]: one["gpu_hours"] for one in listed}


@pytest.mark.parametrize(
    ("trace", "file", "mapping"),
    [
        ("thetagpu-2023-early", "data_thetagpu.csv.gz", "thetagpu"),
        ("philly-by-vc", "philly.csv.gz", "philly-by-vc"),
    ],
)
def test_gpu_hours_of_a_table_equal_the_reference_to_a_millionth(
    shared: Path, repository: Path, trace: str, file: str, mapping: str
) -> None:
    folder = shared / "traces" / trace
    reference = json.loads((folder / "reference.json").read_text())
    known = load_mapping(repository / "data" / "mappings" / f"{mapping}.yaml")

    reading = read_table(folder / file, known, cluster="c")

    by_account = dict(reading.runs.group_by("account").agg(HELD_GPU_H.sum()).iter_rows())
    assert (reading.rows_read, reading.runs.filter(HAS_RUN).height) == (reference["rows"], reference["valid_rows"])
    assert reading.runs.select(HELD_GPU_H.sum()).item() == pytest.approx(reference["gpu_hours"], rel=1e-6)
    assert len(by_account) == reference["n_vc"]
    for account, gpu_h in top_ten(reference).items():
        assert by_account[account] == pytest.approx(gpu_h, rel=1e-6)


def test_waits_of_thetagpu_have_the_published_quantiles(shared: Path, repository: Path) -> None:
    folder = shared / "traces" / "thetagpu-2023-early"
    reference = json.loads((folder / "reference.json").read_text())
    runs = read_table(
        folder / "data_thetagpu.csv.gz", load_mapping(repository / "data/mappings/thetagpu.yaml"), cluster="c"
    ).runs

    wait_s = runs.select((pl.col("started_at") - pl.col("eligible_at")).dt.total_milliseconds() / 1000).to_series()
    for quantile in (50, 90, 99):
        expected = reference[f"wait_p{quantile}_s"]
        assert wait_s.quantile(quantile / 100, "linear") == pytest.approx(expected, abs=1e-3)


def test_a_log_of_xdmod_without_header_counts_its_cpus(shared: Path) -> None:
    reading = read_slurm(shared / "traces/xdmod-sacct-phillips/phillips.log", cluster=None, count="cpus")

    assert (reading.rows_read, reading.accepted, reading.runs.filter(HAS_RUN).height) == (4285, 4285, 4024)
    assert reading.runs.select(HELD_GPU_H.sum()).item() == pytest.approx(11767.98833, rel=1e-9)
    assert reading.runs["cluster"].unique().to_list() == ["phillips"]
    assert reading.runs.filter(pl.col("state") == "CANCELLED").height > 0


@pytest.mark.parametrize(
    ("name", "rows", "accepted", "ignored"),
    [
        ("sample-sacct-output.txt", 68, 0, [("step_row", 68)]),
        ("sample-sacct-running-output-large.txt.gz", 5040, 0, [("step_row", 5040)]),
        ("sample-sacct-output-invalid-utf8.txt", 11, 2, [("step_row", 9)]),
        ("sample-sacct-one-multiline.txt", 4, 2, [("step_row", 2)]),
        ("sample-sacct-fake-line-break.txt", 4, 2, [("step_row", 2)]),
        ("sample-sacct-multiple-multiline.txt", 6, 2, [("duplicate_record", 2), ("step_row", 2)]),
    ],
)
def test_the_broken_logs_of_gcm_are_read_to_the_last_record(
    shared: Path, name: str, rows: int, accepted: int, ignored: list[tuple[str, int]]
) -> None:
    reading = read_slurm(shared / "traces" / "meta-gcm-sacct" / name, cluster=None)

    assert (reading.rows_read, reading.accepted) == (rows, accepted)
    assert reading.ignored.select("reason", "rows").rows() == ignored


def test_a_line_with_too_few_fields_is_the_only_one_lost(shared: Path) -> None:
    reading = read_slurm(shared / "traces/meta-gcm-sacct/sample-sacct-output-with-invalid-lines.txt", cluster=None)

    assert reading.rejected.select("line", "reason").rows() == [(2, "wrong_field_count")]
