"""The field cases of usage logs and tables, as far as reading them goes: outcomes of rows, GPU-hours, flags."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ingest_cases import check, check_runs, expectations, gpu_hours, moment

from gpupolicy.errors import UnreadableLog
from gpupolicy.ingest import TableMapping, load_mapping, read_slurm, read_table

SACCT = [
    "sacct/sa-01-elapsed-formats", "sacct/sa-02-timelimit-words", "sacct/sa-03-cancelled-by-uid",
    "sacct/sa-04-pipe-in-jobname", "sacct/sa-05-requeue-runs", "sacct/sa-06-arrays-het-steps",
    "sacct/sa-07-tres-generic-and-typed", "sacct/sa-08-legacy-allocgres", "sacct/sa-09-requested-vs-allocated",
    "sacct/sa-10-every-state-counts", "sacct/sa-11-unknown-none-empty-times",
    "sacct/sa-12-trailing-separator-and-repeated-header", "sacct/sa-14-suspended-time", "sacct/sa-15-mig-slices",
    "sacct/sa-16-runaway-jobs", "time/ti-01-autumn-hour-twice", "time/ti-05-skewed-clocks",
    "time/ti-07-wait-from-eligible",
]  # fmt: skip
TABLES = [
    "generic-csv/cs-01-bom-crlf-header-spelling", "generic-csv/cs-02-decimal-comma",
    "generic-csv/cs-03-spreadsheet-mangled", "generic-csv/cs-04-epoch-units",
    "generic-csv/cs-05-huge-ids-with-gaps", "generic-csv/cs-06-missing-and-odd-gpu-counts",
    "time/ti-02-days-of-23-and-25-hours", "time/ti-03-quarter-borders", "time/ti-04-running-at-the-cut-off",
    "time/ti-06-hour-buckets", "capacity/ca-01-nodes-added", "capacity/ca-04-more-used-than-exists",
    "fairshare/fs-14-owed-from-jobs",
]  # fmt: skip


@pytest.mark.parametrize("case", SACCT)
def test_a_case_of_sacct_comes_out_as_expected(shared: Path, case: str) -> None:
    for path, expected in expectations(shared / "cases" / case):
        reading = read_slurm(path, **keywords(expected["params"]))

        check(reading, expected)
        check_runs(reading, expected)


def keywords(params: dict[str, Any]) -> dict[str, Any]:
    """The settings of a case of sacct as `read_slurm` calls them; what is not named stays as it is by default."""
    renamed = {"timezone": "timezone", "mig_rule": "mig_rule", "overrun_grace_hours": "overrun_grace_h"}
    return {
        "cluster": "c",
        "observed_until": moment(params.get("cutoff")),
        "gpu_only_partitions": frozenset(params.get("gpu_only_partitions", ())),
        **{ours: params[name] for name, ours in renamed.items() if name in params},
    }


def test_a_run_open_long_after_its_limit_is_shown_apart(shared: Path) -> None:
    ((path, expected),) = expectations(shared / "cases/sacct/sa-16-runaway-jobs")
    reading = read_slurm(path, **keywords(expected["params"]))

    excluded = gpu_hours(reading, reading.set_aside, expected["params"])
    assert excluded == expected["excluded_gpu_hours"]["suspected_runaway"]


def test_slices_counted_as_devices_give_the_hours_of_devices(shared: Path) -> None:
    ((path, expected),) = expectations(shared / "cases/sacct/sa-15-mig-slices")
    reading = read_slurm(path, cluster="c", mig_rule="devices")

    assert gpu_hours(reading, reading.runs, expected["params"]) == expected["device_hours_by_account"]


@pytest.mark.parametrize("case", TABLES)
def test_a_case_of_a_table_comes_out_as_expected(shared: Path, repository: Path, case: str) -> None:
    generic = load_mapping(repository / "data/mappings/generic.yaml").model_dump(exclude_defaults=True)
    for path, expected in expectations(shared / "cases" / case):
        params = expected["params"]
        ours = {"job_id": "workload_id", "start": "started_at", "end": "ended_at"}
        renamed = {ours.get(name, name): column for name, column in params.get("columns", {}).items()}
        form = {name: params[name] for name in ("decimal", "thousands") if name in params}
        mapping = TableMapping.model_validate(generic | form | {"columns": generic["columns"] | renamed})

        reading = read_table(
            path, mapping, cluster="c", timezone=params.get("timezone"), observed_until=moment(params.get("cutoff"))
        )

        check(reading, expected)
        if "job_ids" in expected:
            assert reading.runs["workload_id"].sort().to_list() == expected["job_ids"]


def test_output_of_fixed_width_is_refused_with_the_option_that_is_needed(shared: Path) -> None:
    path = shared / "cases/sacct/sa-13-fixed-width-output/input.txt"

    with pytest.raises(UnreadableLog, match=r"not_parsable_output: .* ask sacct with -a -X -D -P"):
        read_slurm(path, cluster="c")
