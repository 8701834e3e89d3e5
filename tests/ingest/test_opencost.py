"""Allocations of OpenCost: GPU-hours of a window become runs that add up to them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ingest.kube import gpu_hours, rows, spans, waits_s

from gpupolicy.errors import UnreadableLog
from gpupolicy.ingest import Reading, read_opencost

WINDOW = {"start": "2026-03-01T00:00:00Z", "end": "2026-03-02T00:00:00Z"}
Read = Callable[..., Reading]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read(*windows: dict[str, Any], reply: dict[str, Any] | None = None, **options: Any) -> Reading:  # noqa: ANN401
        path = tmp_path / "allocation.json"
        path.write_text(json.dumps(reply or {"code": 200, "data": windows}))
        return read_opencost(path, **({"cluster": "c"} | options))

    return read


def allocation(properties: dict[str, Any], gpu_h: object, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"properties": properties, "window": WINDOW, **WINDOW, "gpuHours": gpu_h} | more


def test_a_reply_by_pod_gives_each_pods_gpu_hours_to_its_node(shared: Path) -> None:
    reading = read_opencost(shared / "cases/targets/ingest/opencost_allocation.json", cluster=None)

    assert spans(reading) == [
        ("ns-a1/pretrain-0", "02.09:00", "03.08:00", 8.0),
        ("ns-a1/done-0", "02.10:00", "02.13:30", 8.0),
        ("ns-b1/prem-0", "02.13:00", "02.17:00", 8.0),
    ]
    assert gpu_hours(reading) == {"a1": 212.0, "b1": 32.0}
    assert rows(reading)["ignored_by_reason"] == {"idle_capacity": 1}
    assert reading.runs["cluster"].unique().to_list() == ["c1"]
    assert waits_s(reading) == [None, None, None]


def test_what_was_added_up_by_namespace_is_one_run_a_window_with_the_mean_of_its_gpus(read: Read) -> None:
    later = {"start": "2026-03-02T00:00:00Z", "end": "2026-03-03T00:00:00Z"}
    first = {"nlp": allocation({"namespace": "nlp"}, 36.0), "vision": allocation({"namespace": "vision"}, 0)}

    reading = read(first, {"nlp": allocation({"namespace": "nlp"}, 12.0, **later)})

    assert spans(reading) == [
        ("nlp", "01.00:00", "02.00:00", 1.5),
        ("vision", "01.00:00", "02.00:00", 0.0),
        ("nlp", "02.00:00", "03.00:00", 0.5),
    ]
    assert gpu_hours(reading) == {"nlp": 48.0, "vision": 0.0}


def test_labels_are_found_however_opencost_spells_them(read: Read) -> None:
    labels = {"gpupolicy_node": "a1", "example_com_team": "video"}
    one = {"p": allocation({"namespace": "nlp", "pod": "p", "labels": labels}, 24)}

    assert read(one).runs["account"].to_list() == ["a1"]
    assert read(one, account_from=["label:example.com/team"]).runs["account"].to_list() == ["video"]
    assert read(one, account_from=["namespace"]).runs["account"].to_list() == ["nlp"]


def test_a_shared_gpu_is_flagged_because_opencost_counts_it_whole_for_each_pod(read: Read) -> None:
    gpu = {"gpuAllocation": {"gpuType": "H100", "isGPUShared": True, "gpuUsageAverage": 0.25}}

    reading = read({"p": allocation({"namespace": "nlp", "pod": "p"}, 24.0, **gpu)})

    assert reading.runs.select("gpu_type", "utilization_ratio").rows() == [("H100", 0.25)]
    assert reading.flagged.rows() == [("shared_gpu", "nlp/p", 1)]


def test_allocations_that_do_not_add_up_are_rejected_each_with_its_reason(read: Read) -> None:
    nothing = {"end": WINDOW["start"]}
    backward = {"start": "2026-03-01T10:00:00Z", "end": "2026-03-01T09:00:00Z"}

    reading = read(
        {
            "a": allocation({"pod": "a"}, None),
            "b": allocation({"pod": "b"}, "many"),
            "c": allocation({"pod": "c"}, 3.0, **nothing),
            "d": allocation({"pod": "d"}, 1.0, **backward),
            "e": allocation({"pod": "e"}, 1.0, start="today"),
        }
    )

    assert reading.rejected.select("reason").to_series().to_list() == [
        "missing_value", "bad_number", "bad_number", "end_before_start", "bad_time",
    ]  # fmt: skip
    assert reading.rejected["detail"][2] == "c: gpuHours '3.0' in 0 hours"


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ({"code": 400, "data": None, "message": "invalid window"}, "error_answer: .*invalid window"),
        ({"status": "success", "data": {}}, "error_answer: .*it has status, data, no code 200"),
        (
            {"code": 200, "data": [{"a": allocation({"cluster": "x"}, 1)}, {"b": allocation({"cluster": "y"}, 1)}]},
            "several_clusters: x, y",
        ),
        ({"code": 200, "data": []}, "nothing in it names the cluster"),
    ],
)
def test_an_error_answer_or_several_clusters_at_once_are_refused(read: Read, reply: Any, message: str) -> None:  # noqa: ANN401
    with pytest.raises(UnreadableLog, match=message):
        read(reply=reply, cluster=None)
