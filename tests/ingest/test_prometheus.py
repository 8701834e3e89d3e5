"""Samples of Prometheus: saved replies, tables of samples, and what is no sample of ours."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from ingest.kube import case, gpu_hours, rows, spans, utc

from gpupolicy.errors import InvalidInput, UnreadableLog
from gpupolicy.ingest import Reading, read_prometheus

MIDNIGHT = 1772323200  # 2026-03-01T00:00:00Z
REQUESTS = "kube_pod_container_resource_requests"
Read = Callable[..., Reading]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Read series as the reply of a range query on cluster c."""

    def read(*series: dict[str, Any], reply: dict[str, Any] | None = None, **options: Any) -> Reading:  # noqa: ANN401
        path = tmp_path / "reply.json"
        success = {"status": "success", "data": {"resultType": "matrix", "result": series}}
        path.write_text(json.dumps(reply or success))
        return read_prometheus(path, **({"cluster": "c"} | options))

    return read


def held(values: Sequence[object], *, since: int = 36000, step_s: int = 900, **labels: str) -> dict[str, Any]:
    """GPUs of pod p on host n1 from 10 h on, every quarter of an hour; None is no sample."""
    common = {"__name__": REQUESTS, "resource": "nvidia_com_gpu", "namespace": "nlp", "pod": "p", "node": "n1"}
    points = [[MIDNIGHT + since + at * step_s, str(value)] for at, value in enumerate(values) if value is not None]
    return {"metric": {name: text for name, text in (common | labels).items() if text}, "values": points}


def used(*values: object, **labels: str) -> dict[str, Any]:
    common = {"__name__": "DCGM_FI_DEV_GPU_UTIL", "Hostname": "n1", "gpu": "0", "resource": "", "node": ""}
    return held(values, **(common | labels))


@pytest.mark.parametrize("name", ["k8-05", "k8-06"])
@pytest.mark.parametrize("is_step_given", [True, False])
def test_the_field_cases_of_samples_come_out_as_expected(shared: Path, name: str, is_step_given: bool) -> None:
    one = case(shared, name)
    step_s = one.params["sample_interval_seconds"] if is_step_given else None

    reading = read_prometheus(one.path, cluster="c", step_s=step_s, observed_until=one.cutoff)

    assert rows(reading) == one.expected["rows"]
    assert gpu_hours(reading, one.params) == pytest.approx(one.expected["gpu_hours_by_account"], abs=1e-6)
    if "unknown_minutes" in one.expected:
        assert reading.notices[0].startswith(f"{one.expected['unknown_minutes']} minutes between samples")


def test_the_recorded_reply_is_integrated_left_closed(shared: Path, tmp_path: Path) -> None:
    calls = json.loads((shared / "cases/targets/ingest/prometheus.json").read_text())["calls"]
    path = tmp_path / "reply.json"
    path.write_text(json.dumps(calls[0]["response"]))

    reading = read_prometheus(path, cluster="c", measured="gpus")

    until = (utc("2026-11-30T00:50:00Z") + timedelta(seconds=7200)).isoformat() + "+00:00"
    assert gpu_hours(reading, {"cutoff": until}) == {"team-a": 16.0}
    path.write_text(json.dumps(calls[1]["response"]))
    usage = read_prometheus(path, cluster="c", measured="utilization", unit="percent").utilization
    assert usage["utilization_ratio"].to_list() == [0.5, 0.5, 0.51, 0.51, 0.52]
    path.write_text(json.dumps(calls[3]["response"]))
    assert read_prometheus(path, cluster="c").notices == ("the query found no series",)
    path.write_text(json.dumps(calls[2]["response"]))
    with pytest.raises(UnreadableLog, match=r"no_range: it answers an instant query \(vector\)"):
        read_prometheus(path, cluster="c")


def test_a_second_replica_fills_the_gaps_of_the_first_and_nothing_else(read: Read) -> None:
    first = held([2, 2, None, 2], prometheus_replica="a")
    second = held([2, 2, 2], since=36007, prometheus_replica="b")

    reading = read(first, second, step_s=900)

    assert rows(reading)["ignored_by_reason"] == {"replica_duplicate": 2}
    assert gpu_hours(reading) == {"nlp": 2.0}


def test_two_exporters_and_the_limits_beside_the_requests_count_once(read: Read) -> None:
    limits = held([4, 4], __name__="kube_pod_container_resource_limits", instance="a")

    reading = read(held([4, 4], instance="a"), held([4, 4], instance="b"), limits)

    assert gpu_hours(reading) == {"nlp": 2.0}
    assert rows(reading)["ignored_by_reason"] == {"replica_duplicate": 4}


def test_containers_and_kinds_of_devices_of_one_pod_add_up(read: Read) -> None:
    slices = held([7, 7], container="b", resource="nvidia_com_mig_1g_10gb")

    reading = read(held([2, 2], container="a"), held([1, 1], container="b"), slices)

    assert spans(reading) == [("nlp/p", "01.10:00", "01.10:30", pytest.approx(4.0))]
    assert rows(reading)["accepted"] == 6


def test_processors_are_no_gpus_and_pods_without_a_host_hold_none(read: Read) -> None:
    reading = read(held([64, 64], resource="cpu"), held([8, 8], pod="waits", node=""), held([1, 1]))

    assert spans(reading) == [("nlp/p", "01.10:00", "01.10:30", 1.0)]
    assert rows(reading)["ignored_by_reason"] == {"other_resource": 2, "not_placed": 2}
    assert "finished pods keep their requests" in reading.notices[0]


def test_a_run_is_cut_where_its_gpus_change_and_at_the_full_hour(read: Read) -> None:
    reading = read(held([4, 4, 2, 2, 2, 2]))

    assert spans(reading) == [
        ("nlp/p", "01.10:00", "01.10:30", 4.0),
        ("nlp/p", "01.10:30", "01.11:00", 2.0),
        ("nlp/p", "01.11:00", "01.11:30", 2.0),
    ]
    assert reading.runs.select("submitted_at", "eligible_at").row(0) == (utc("2026-03-01T10:00:00Z"), None)


def test_windows_that_overlap_tell_of_the_same_pieces(read: Read) -> None:
    morning, noon = read(held([1] * 12)), read(held([1] * 12, since=39600))

    key = ["workload_id", "submitted_at", "started_at", "ended_at", "gpus"]
    both = pl.concat([morning.runs, noon.runs]).unique(key)
    assert morning.runs.height + noon.runs.height == 6
    assert both.height == 4
    assert both.select(((pl.col("ended_at") - pl.col("started_at")).dt.total_hours()).sum()).item() == 4


def test_usage_of_a_queue_is_a_workload_of_its_own(read: Read) -> None:
    queue = {"__name__": "kueue_cluster_queue_resource_usage", "cluster_queue": "a1", "flavor": "h100"}
    points = [[MIDNIGHT, "16"], [MIDNIGHT + 1800, "16"]]

    reading = read({"metric": queue | {"resource": "nvidia.com/gpu"}, "values": points}, account_from=["queue"])

    assert reading.runs.select("workload_id", "account", "gpu_type", "gpus").rows() == [("a1", "a1", "h100", 16.0)]


def test_utilization_keeps_each_gpu_with_its_pod_and_the_time_a_sample_stands_for(read: Read) -> None:
    pod = {"exported_namespace": "nlp", "exported_pod": "p", "namespace": "gpu-operator", "pod": "dcgm-exporter-x"}
    idle = {"namespace": "gpu-operator", "pod": "dcgm-exporter-x", "gpu": "1"}

    reading = read(used(50, 100, None, 25, **pod), used(0, 0, **idle))

    told = ("workload_id", "host", "gpu", "covers_s", "utilization_ratio")
    assert reading.utilization.select(told).rows() == [
        ("nlp/p", "n1", "0", 900, 0.5),
        ("nlp/p", "n1", "0", 900, 1.0),
        ("nlp/p", "n1", "0", 900, 0.25),
        (None, "n1", "1", 900, 0.0),
        (None, "n1", "1", 900, 0.0),
    ]
    assert reading.runs.is_empty()


def test_slices_of_a_card_are_told_apart_and_fractions_are_no_percent(read: Read) -> None:
    card = {"__name__": "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "UUID": "GPU-7"}

    reading = read(used(0.5, 0.5, GPU_I_ID="1", **card), used(1.5, 0.25, GPU_I_ID="2", **card))

    assert reading.utilization["gpu"].to_list() == ["GPU-7/1", "GPU-7/1", "GPU-7/2"]
    assert reading.utilization["utilization_ratio"].to_list() == [0.5, 0.5, 0.25]
    assert rows(reading)["rejected_by_reason"] == {"bad_number": 1}


def test_a_value_that_is_no_number_is_rejected_and_can_be_mended(read: Read) -> None:
    reading = read(held([1, "NaN", -1, "+Inf", 1]))

    assert reading.rejected.select("line", "reason", "detail").rows() == [
        (2, "bad_number", "value 'NaN'"),
        (3, "bad_number", "value '-1'"),
        (4, "bad_number", "value '+Inf'"),
    ]
    assert json.loads(reading.rejected["text"][0])["values"] == [[MIDNIGHT + 36900, "NaN"]]


def test_series_of_several_clusters_keep_their_names_or_are_refused(read: Read) -> None:
    series = held([1, 1], cluster="x"), held([2, 2], cluster="y")

    both = read(*series, cluster=None)

    assert both.runs.select("cluster", "gpus").sort("cluster").rows() == [("x", 1.0), ("y", 2.0)]
    with pytest.raises(UnreadableLog, match="several_clusters: x, y"):
        read(*series)
    with pytest.raises(UnreadableLog, match="no label names the cluster of all series"):
        read(held([1, 1]), cluster=None)


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ({"status": "error", "errorType": "bad_data", "error": "parse error"}, "answered bad_data: parse error"),
        ({"code": 200, "data": []}, "this is no reply of Prometheus: it has code, data"),
        ({"status": "success", "data": {"resultType": "scalar", "result": [1, "2"]}}, "no_range"),
        ({"status": "success", "data": {"resultType": "matrix", "result": [{"values": [[1]]}]}}, "no pairs of a time"),
    ],
)
def test_an_answer_that_is_no_range_is_refused(read: Read, reply: dict[str, Any], message: str) -> None:
    with pytest.raises(UnreadableLog, match=message):
        read(reply=reply)


def test_counters_are_refused_and_nothing_is_guessed(read: Read) -> None:
    with pytest.raises(UnreadableLog, match="counter: kueue_evicted_workloads_total only ever grows"):
        read(held([1, 2], __name__="kueue_evicted_workloads_total"))
    with pytest.raises(UnreadableLog, match=r"unknown_measure: .*say gpus or utilization"):
        read(held([1, 2], __name__="DCGM_FI_DEV_GPU_TEMP"))
    with pytest.raises(InvalidInput, match="say percent or fraction"):
        read(held([1, 1], __name__=""), measured="utilization")
    with pytest.raises(InvalidInput, match="say it with --step SECONDS"):
        read(held([1]))


def test_a_reply_that_breaks_off_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "reply.json"
    path.write_text('{"status": "success", "data": {"resultType": "matrix", "result": [{"metric": {}, "values": [[1,')

    with pytest.raises(UnreadableLog, match="truncated"):
        read_prometheus(path, cluster="c")
