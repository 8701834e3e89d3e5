"""Traces of other sites by the mapping files we ship: their published figures come out, to a millionth."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest

from gpupolicy.ingest import load_level_mapping, load_mapping, read_levels, read_table

RAN_S = (pl.col("ended_at") - pl.col("started_at")).dt.total_milliseconds() / 1000
WAIT_S = (pl.col("started_at") - pl.col("eligible_at")).dt.total_milliseconds() / 1000
GPU_H = RAN_S * pl.col("gpus") / 3600
IS_DEBUG = (pl.col("gpus") <= 8) & (RAN_S <= 900)

TRACES = [
    ("philly-sample-json", "sampled_jobs.json.gz", "philly-sample-json"),
    ("itp-2021-even", "cluster*.csv.gz", "itp"),
    ("nhr-alex-2023-util", "jobs.csv", "nhr-alex"),
    ("philly-by-vc", "philly.csv.gz", "philly-by-vc"),
    ("thetagpu-2023-early", "data_thetagpu.csv.gz", "thetagpu"),
]
SAMPLES = [
    ("helios_cluster_log.csv", "helios", [
        ("1425511", "vcJkd", "uXBbc", 1, 36848), ("1425512", "vchbv", "uVMrF", 4, 249),
        ("1425513", "vcpDC", "uzqls", 1, 675233),
    ]),
    ("acme_trace_kalos.csv", "acme", [
        ("dlctk696s0jbvitv", None, "uf794", 64, 8), ("dlc1t2ypl09b8qtp", None, "uf794", 64, 70),
    ]),
    ("acme_trace_seren.csv", "acme", [("5778432", None, "u5907", 8, 117), ("5778469", None, "u5907", 8, 2693)]),
    ("alibaba_spot_job_info_df.csv", "alibaba-spot", [
        ("239255", "13", None, 1, 2764799), ("253689", "13", None, 1, 15897599),
        ("437260", "57", None, 16, 41060), ("437261", "57", None, 94, 71718),
    ]),
    ("philly_cluster_job_log.json", "philly-job-log", [
        ("application_1506638472019_14199", "ee9e8c", "ce2f4c", 8, 74),
        ("application_1506638472019_14199", "ee9e8c", "ce2f4c", 8, 193182),
    ]),
]  # fmt: skip


def runs_of(shared: Path, repository: Path, files: tuple[str, str, str]) -> tuple[dict[str, object], pl.DataFrame]:
    """The reference of a trace, and the runs of all of its files."""
    trace, pattern, mapping = files
    folder = shared / "traces" / trace
    known = load_mapping(repository / "data" / "mappings" / f"{mapping}.yaml")
    readings = [read_table(path, known, cluster="c") for path in sorted(folder.glob(pattern))]
    assert [reading.rejected.height for reading in readings] == [0] * len(readings)
    return json.loads((folder / "reference.json").read_text()), pl.concat(reading.runs for reading in readings)


@pytest.mark.parametrize("files", TRACES, ids=lambda files: files[0])
def test_rows_and_gpu_hours_in_all_and_of_each_vc(shared: Path, repository: Path, files: tuple[str, str, str]) -> None:
    reference, runs = runs_of(shared, repository, files)
    by_vc = dict(runs.group_by("account").agg(GPU_H.sum()).iter_rows())

    valid = runs.filter((pl.col("gpus") > 0) & (RAN_S > 0))
    assert (runs.height, valid.height) == (reference["rows"], reference["valid_rows"])
    assert runs["user_name"].drop_nulls().n_unique() == reference["n_users"]
    assert len(by_vc) == reference["n_vc"]
    assert sum(by_vc.values()) == pytest.approx(reference["gpu_hours"], rel=1e-6)
    for top in reference["gpu_hours_by_vc_top10"]:
        assert by_vc[top["vc"]] == pytest.approx(top["gpu_hours"], rel=1e-6)


@pytest.mark.parametrize("files", TRACES, ids=lambda files: files[0])
def test_waits_of_all_and_of_debug_jobs(shared: Path, repository: Path, files: tuple[str, str, str]) -> None:
    reference, runs = runs_of(shared, repository, files)
    waits = {"wait": runs, "debug_wait": runs.filter(IS_DEBUG)}

    assert waits["debug_wait"].height == reference["debug_jobs"]
    for name, some in waits.items():
        for percent in (50, 90, 99):
            told = reference[f"{name}_p{percent}_s"] if reference["has_queue_wait"] else 0
            assert some.select(WAIT_S.quantile(percent / 100, "linear")).item() == pytest.approx(told, rel=1e-6)


def test_utilization_of_each_job_weighs_by_its_gpu_hours(shared: Path, repository: Path) -> None:
    reference, runs = runs_of(shared, repository, TRACES[2])

    used = runs.select((GPU_H * pl.col("utilization_ratio")).sum() / GPU_H.sum()).item()
    hardly = runs.select(GPU_H.filter(pl.col("utilization_ratio") < 0.05).sum() / GPU_H.sum()).item()
    assert 100 * used == pytest.approx(reference["gpu_hour_weighted_utilization_pct"], rel=1e-6)
    assert hardly == pytest.approx(reference["share_of_gpu_hours_below_5pct"], rel=1e-6)
    assert runs.select(pl.col("gpu_type").unique().sort()).to_series().to_list() == ["a100", "a100m80", "a40"]


@pytest.mark.parametrize(("file", "mapping", "jobs"), SAMPLES, ids=lambda one: one if isinstance(one, str) else "")
def test_a_few_rows_of_what_is_too_large_are_read_as_the_whole_would_be(
    shared: Path, repository: Path, file: str, mapping: str, jobs: list[tuple[object, ...]]
) -> None:
    known = load_mapping(repository / "data" / "mappings" / f"{mapping}.yaml")
    reading = read_table(shared / "traces" / "format-samples" / file, known, cluster="c")

    assert reading.runs.select("workload_id", "account", "user_name", "gpus", RAN_S.cast(pl.Int64)).rows() == jobs
    assert reading.rows_read == len(jobs)


def test_the_second_attempt_of_a_job_waited_for_seconds_not_since_submission(shared: Path, repository: Path) -> None:
    known = load_mapping(repository / "data" / "mappings" / "philly-job-log.yaml")
    reading = read_table(shared / "traces/format-samples/philly_cluster_job_log.json", known, cluster="c")

    assert reading.runs.select("hosts", WAIT_S).rows() == [("m47", 30), ("m412", 7)]


def test_spot_is_free_and_what_comes_before_it_is_charged(shared: Path, repository: Path) -> None:
    known = load_mapping(repository / "data" / "mappings" / "alibaba-spot.yaml")
    reading = read_table(shared / "traces/format-samples/alibaba_spot_job_info_df.csv", known, cluster="c")

    assert reading.runs["is_charged"].to_list() == [True, True, False, False]


@pytest.fixture(scope="module")
def helios(shared: Path, repository: Path) -> tuple[dict[str, object], pl.DataFrame]:
    """What eight virtual clusters held and wanted in each hour of a month, from counts by the minute."""
    folder = shared / "traces" / "helios-earth-2020-05-a"
    known = load_level_mapping(repository / "data" / "mappings" / "helios-minutes.yaml")
    readings = [read_levels(path, known, cluster="earth") for path in sorted(folder.glob("vc*.csv.gz"))]
    reference = json.loads((folder / "reference.json").read_text())
    assert sum(reading.rows_read for reading in readings) == reference["rows"]
    assert [reading.accepted for reading in readings] == [reference["minutes"]] * reference["n_vc"]
    runs = pl.concat(reading.runs for reading in readings)
    gpu_h = (pl.col("ended_at") - pl.col("submitted_at")).dt.total_seconds() * pl.col("gpus") / 3600
    hours = runs.group_by("account", hour=pl.col("submitted_at").dt.truncate("1h")).agg(
        held=gpu_h.filter(pl.col("started_at").is_not_null()).sum(), wanted=gpu_h.sum()
    )
    return reference, hours


def test_counts_by_the_minute_give_held_and_wanted_gpu_hours(helios: tuple[dict[str, object], pl.DataFrame]) -> None:
    reference, hours = helios
    by_vc = {vc: told for vc, *told in hours.group_by("account").agg(pl.col("held", "wanted").sum()).iter_rows()}

    assert hours["held"].sum() == pytest.approx(reference["gpu_hours"], rel=1e-6)
    assert hours["wanted"].sum() == pytest.approx(reference["demand_gpu_hours"], rel=1e-6)
    for one in reference["per_vc"]:
        assert by_vc[one["vc"]] == pytest.approx([one["gpu_hours"], one["demand_gpu_hours"]], rel=1e-6)


def test_counts_by_the_minute_give_owed_and_delivered(helios: tuple[dict[str, object], pl.DataFrame]) -> None:
    reference, hours = helios
    blocks = pl.DataFrame([{"account": one["vc"], "block": one["capacity_gpus"]} for one in reference["per_vc"]])
    owed = hours.join(blocks, on="account").with_columns(owed=pl.min_horizontal("block", "wanted"))
    by_vc = owed.group_by("account").agg(pl.col("owed").sum(), got=pl.min_horizontal("held", "owed").sum())

    ratios = by_vc.select(pl.col("got") / pl.col("owed")).to_series()
    assert by_vc["got"].sum() / by_vc["owed"].sum() == pytest.approx(reference["owed_own_block_delivered"], rel=1e-6)
    assert ratios.min() == pytest.approx(reference["owed_own_block_worst_vc"], rel=1e-6)
    assert (ratios >= 0.95).sum() == reference["owed_own_block_vcs_at_95"]


def test_levels_are_told_from_workloads_and_meet_again_when_files_overlap(tmp_path: Path, repository: Path) -> None:
    known = load_level_mapping(repository / "data" / "mappings" / "helios-minutes.yaml")
    (tmp_path / "vc1.csv").write_text(
        "time,running_gpu_num,pending_gpu_num\n2020-05-01 00:00:00,4,2\n2020-05-01 00:01:00,0,0\n"
        "2020-05-01 00:01:00,1,0\n2020-05-01 00:01:00,1,0\nsoon,1,0\n2020-05-01 00:03:00,,0\n"
    )
    reading = read_levels(tmp_path / "vc1.csv", known, cluster="c")

    assert reading.runs.select("workload_id", "submitted_at", "started_at", "gpus", "state").rows() == [
        ("held/vc1///true", datetime(2020, 5, 1), datetime(2020, 5, 1), 4, "LEVEL"),
        ("held/vc1///true", datetime(2020, 5, 1, 0, 1), datetime(2020, 5, 1, 0, 1), 1, "LEVEL"),
        ("wanted/vc1///true", datetime(2020, 5, 1), None, 2, "LEVEL"),
        ("wanted/vc1///true", datetime(2020, 5, 1, 0, 1), None, 0, "LEVEL"),
    ]
    assert reading.rejected["reason"].to_list() == ["bad_time", "missing_value"]
    assert reading.ignored.select("reason", "rows").rows() == [("duplicate_record", 1), ("superseded_record", 1)]
    assert (reading.rows_read, reading.accepted) == (6, 2)
