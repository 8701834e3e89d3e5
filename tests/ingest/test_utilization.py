"""Samples of utilization: what they are of, how long each stands for, and what a gap hides."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from gpupolicy.errors import InvalidInput
from gpupolicy.ingest import Reading, load_utilization_mapping, read_utilization

Samples = Callable[..., Reading]

EIGHT = datetime(2026, 3, 1, 8)


@pytest.fixture
def samples(tmp_path: Path, repository: Path) -> Samples:
    """Read lines under a header as samples by the mapping of plain names."""

    def read(header: str, *rows: str, **options: object) -> Reading:
        (tmp_path / "samples.csv").write_text("\n".join([header, *rows]) + "\n")
        known = load_utilization_mapping(repository / "data" / "mappings" / "utilization.yaml")
        return read_utilization(tmp_path / "samples.csv", known, cluster="c", **options)  # type: ignore[arg-type]

    return read


def at(minute: int) -> str:
    return f"{EIGHT + timedelta(minutes=minute):%Y-%m-%dT%H:%M:%SZ}"


def test_the_figures_of_a_day_of_containers_come_out(shared: Path, repository: Path) -> None:
    folder = shared / "traces" / "genai-2026-gpu-util"
    reference = json.loads((folder / "reference.json").read_text())
    known = load_utilization_mapping(repository / "data" / "mappings" / "genai-gpu-util.yaml")

    reading = read_utilization(folder / "pod_gpu_duty_cycle_anon.csv.gz", known, cluster="c")

    percent = reading.utilization["utilization_ratio"] * 100
    assert (reading.rows_read, reading.accepted) == (reference["rows"], reference["rows"])
    assert reading.utilization["workload_id"].n_unique() == reference["containers"]
    assert percent.mean() == pytest.approx(reference["duty_cycle_mean"], rel=1e-6)
    assert percent.quantile(0.9, "linear") == pytest.approx(reference["duty_cycle_p90"], rel=1e-6)
    assert percent.max() == pytest.approx(reference["duty_cycle_max"], rel=1e-6)
    assert (percent == 0).mean() == pytest.approx(reference["share_of_samples_at_zero"], rel=1e-6)
    assert reading.utilization["covers_s"].unique().to_list() == [57]


def test_a_sample_stands_for_the_time_to_the_next_of_its_series_but_not_over_a_gap(samples: Samples) -> None:
    rows = [f"{at(minute)},{job},50" for minute in (3, 0, 1, 2, 33, 34) for job in ("a", "b")]
    reading = samples("time,job_id,utilization", *rows, f"{at(35)},b,50", "2026-03-01T08:36:05Z,b,50")

    of_b = reading.utilization.filter(pl.col("workload_id") == "b").sort("sampled_at")
    assert of_b["covers_s"].to_list() == [60, 60, 60, 60, 60, 60, 65, 60]
    assert reading.observed_until == datetime(2026, 3, 1, 8, 37, 5)


def test_each_gpu_of_a_host_is_a_series_of_its_own(samples: Samples) -> None:
    rows = [f"{at(minute)},n1,{gpu},{10 * gpu}" for minute in (0, 5) for gpu in (0, 1)]
    reading = samples("time,node,gpu,utilization", *rows)

    assert reading.utilization.select("host", "gpu", "covers_s", "utilization_ratio").rows() == [
        ("n1", "0", 300, 0.0), ("n1", "1", 300, 0.1), ("n1", "0", 300, 0.0), ("n1", "1", 300, 0.1),
    ]  # fmt: skip


def test_what_the_file_says_a_sample_covers_is_believed(samples: Samples) -> None:
    reading = samples("time,job_id,covers,utilization", f"{at(0)},a,15,1", f"{at(1)},a,15,1", f"{at(2)},a,,1")

    assert reading.utilization["covers_s"].to_list() == [15, 15, 60]


def test_one_sample_alone_does_not_say_what_it_stands_for(samples: Samples) -> None:
    assert samples("time,job_id,utilization", f"{at(0)},a,5").utilization["covers_s"].to_list() == [None]


def test_of_two_samples_of_one_moment_the_last_stays(samples: Samples) -> None:
    reading = samples("time,job_id,utilization", *(f"{at(0)},a,{value}" for value in (5, 5, 7)), f"{at(1)},a,9")

    assert reading.utilization["utilization_ratio"].to_list() == [0.07, 0.09]
    assert reading.ignored.select("reason", "rows").rows() == [("duplicate_record", 1), ("superseded_record", 1)]
    assert reading.rows_read == 4


def test_samples_that_cannot_be_trusted_are_rejected_with_the_reason(samples: Samples) -> None:
    cells = ["a,n1,101", "a,n1,", ",,5", "a,n1,NaN"]
    rows = [*(f"{at(0)},{cell}" for cell in cells), "2026-03-01 08:00,a,n1,5", ",a,n1,5"]
    reading = samples("time,job_id,node,utilization", *rows)

    assert reading.rejected.select("line", "reason", "detail").rows() == [
        (2, "bad_number", "utilization '101'"),
        (3, "missing_value", "there is no utilization_ratio"),
        (4, "missing_value", "there is no workload_id or host"),
        (5, "missing_value", "there is no utilization_ratio"),
        (6, "naive_without_timezone", "time '2026-03-01 08:00'"),
        (7, "missing_value", "there is no sampled_at"),
    ]
    assert (reading.rows_read, reading.accepted) == (6, 0)


def test_a_mapping_has_to_say_what_a_sample_is_of(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("columns: {sampled_at: t, utilization_ratio: u, gpus: n}\n")

    with pytest.raises(InvalidInput) as refused:
        load_utilization_mapping(tmp_path / "bad.yaml")

    assert "bad.yaml:1: columns.gpus: unknown key; did you mean 'gpu'?" in str(refused.value)
