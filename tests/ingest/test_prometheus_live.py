"""A real Prometheus on loopback, backfilled with samples of our own, asked by our own code."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from ingest.kube import gpu_hours, rows

from gpupolicy.errors import UnreadableLog
from gpupolicy.ingest import GPU_UTILIZATION, GPUS_HELD, fetch_range, read_prometheus, save_reply

pytestmark = pytest.mark.slow

START = datetime(2026, 3, 1, tzinfo=UTC)
DAYS = 3
SCRAPE_S = 300
SCRAPES = DAYS * 86400 // SCRAPE_S


def series(metric: str, value: float, *, since_h: float = 0, until_h: float = 24 * DAYS, **labels: str) -> list[str]:
    """OpenMetrics lines of a gauge, one a scrape in [since, until)."""
    told = ",".join(f'{name}="{text}"' for name, text in labels.items())
    stamps = range(int(since_h * 3600), int(until_h * 3600), SCRAPE_S)
    return [f"{metric}{{{told}}} {value} {int(START.timestamp()) + at}" for at in stamps]


def pod(name: str, gpus: int, phase: str, *, node: str = "n1", until_h: float = 24 * DAYS) -> dict[str, list[str]]:
    """What two kube-state-metrics tell of a pod."""
    requests, phases = "kube_pod_container_resource_requests", "kube_pod_status_phase"
    one = {"namespace": "nlp", "pod": name}
    told: dict[str, list[str]] = {requests: [], phases: []}
    for instance in ("a", "b"):
        where = {"node": node} if node else {}
        for resource, value in (("nvidia_com_gpu", gpus), ("cpu", 12)):
            asked = one | {"container": "m", "resource": resource, "instance": instance} | where
            told[requests] += series(requests, value, until_h=until_h, **asked)
        for each in ("Pending", "Running", "Succeeded"):
            told[phases] += series(phases, float(each == phase), until_h=until_h, **one, phase=each, instance=instance)
    return told


def openmetrics() -> str:
    usage = {
        GPU_UTILIZATION: [
            line
            for gpu, percent in (("0", 90), ("1", 10))
            for line in series(
                GPU_UTILIZATION,
                percent,
                until_h=6,
                Hostname="n1",
                gpu=gpu,
                exported_namespace="nlp",
                exported_pod="run",
            )
        ]
    }
    gap = series("kai_queue_allocated_gpus", 4, until_h=2, queue_name="a1")
    gap += series("kai_queue_allocated_gpus", 4, since_h=3, until_h=5, queue_name="a1")
    pods = [pod("run", 8, "Running"), pod("pulling", 2, "Pending", until_h=1), pod("done", 4, "Succeeded")]
    families: dict[str, list[str]] = {"kai_queue_allocated_gpus": gap} | usage
    for told in [*pods, pod("waiting", 16, "Pending", node="")]:
        for metric, lines in told.items():
            families[metric] = families.get(metric, []) + lines
    text = [f"# TYPE {metric} gauge\n" + "\n".join(lines) for metric, lines in families.items()]
    return "\n".join([*text, "# EOF", ""])


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Prometheus that holds three days of samples."""
    if not (shutil.which("prometheus") and shutil.which("promtool")):
        pytest.skip("no prometheus and promtool on this machine (Debian: the package prometheus)")
    folder = tmp_path_factory.mktemp("prometheus")
    (folder / "samples.txt").write_text(openmetrics())
    (folder / "prometheus.yml").write_text("scrape_configs: []\n")
    make = ["promtool", "tsdb", "create-blocks-from", "openmetrics", folder / "samples.txt", folder / "data"]
    subprocess.run(make, check=True, capture_output=True, timeout=120)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [
        "prometheus", f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}", "--storage.tsdb.retention.time=100y",
    ]  # fmt: skip
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as server:
        try:
            wait_until_ready(f"http://{address}", server)
            yield f"http://{address}"
        finally:
            server.terminate()


def wait_until_ready(url: str, server: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        assert server.poll() is None, "prometheus ended before it was ready"
        try:
            with urllib.request.urlopen(f"{url}/-/ready", timeout=2) as reply:  # noqa: S310 - loopback
                if reply.status == 200:
                    return
        except (urllib.error.URLError, ConnectionError):
            pass
        time.sleep(0.1)
    pytest.fail("prometheus did not get ready within 30 s")


@pytest.fixture(autouse=True)
def _straight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loopback is reached without a proxy, and without a token of whoever runs the tests."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("GPUPOLICY_PROMETHEUS_TOKEN", raising=False)


def test_the_query_for_gpus_held_leaves_out_what_is_over_or_not_placed(prometheus: str, tmp_path: Path) -> None:
    reply = fetch_range(prometheus, GPUS_HELD, start=START, end=START + timedelta(hours=6))
    save_reply(reply, tmp_path / "held.json.gz")

    reading = read_prometheus(tmp_path / "held.json.gz", cluster="c")

    by_pod = reading.runs.group_by("workload_id", "hosts").agg(
        gpu_h=((pl.col("ended_at") - pl.col("started_at")).dt.total_milliseconds() * pl.col("gpus")).sum() / 3_600_000
    )
    # a sample is seen for five minutes after it was taken: one scrape more of the pod that vanished
    assert sorted(by_pod.rows()) == [
        ("nlp/pulling", "n1", pytest.approx(2 * (1 + 1 / 12))),
        ("nlp/run", "n1", pytest.approx(48.0)),
    ]
    assert rows(reading)["accepted"] == 72 + 13
    assert reading.runs["ended_at"].max() == datetime(2026, 3, 1, 6)


def test_raw_samples_of_two_exporters_and_of_processors_count_once(prometheus: str, tmp_path: Path) -> None:
    query = 'kube_pod_container_resource_requests{pod=~"run|waiting"}'
    save_reply(fetch_range(prometheus, query, start=START, end=START + timedelta(hours=2)), tmp_path / "raw.json")

    reading = read_prometheus(tmp_path / "raw.json", cluster="c")

    assert gpu_hours(reading) == {"nlp": 16.0}
    assert rows(reading) == {
        "accepted": 24,
        "ignored": 7 * 24,
        "rejected": 0,
        "ignored_by_reason": {"other_resource": 4 * 24, "not_placed": 2 * 24, "replica_duplicate": 24},
        "rejected_by_reason": {},
    }


def test_a_long_range_comes_in_pages_beyond_what_one_query_may_ask(prometheus: str, tmp_path: Path) -> None:
    query = 'kube_pod_container_resource_requests{pod="run",resource="nvidia_com_gpu",instance="a"}'
    end = START + timedelta(days=DAYS)
    with pytest.raises(UnreadableLog, match="it answered with 400: bad_data: exceeded maximum resolution of 11,000"):
        fetch_range(prometheus, query, start=START, end=end, step_s=15, points_per_page=20_000)

    reply = fetch_range(prometheus, query, start=START, end=end, step_s=15)
    save_reply(reply, tmp_path / "long.json")

    (found,) = reply.series
    assert len(found["values"]) == DAYS * 86400 // 15
    assert [at for at, _ in found["values"]] == sorted({at for at, _ in found["values"]})
    assert gpu_hours(read_prometheus(tmp_path / "long.json", cluster="c")) == {"nlp": 8.0 * 24 * DAYS}


def test_an_hour_without_samples_is_unknown(prometheus: str, tmp_path: Path) -> None:
    reply = fetch_range(prometheus, "kai_queue_allocated_gpus", start=START, end=START + timedelta(hours=5))
    save_reply(reply, tmp_path / "gap.json")

    reading = read_prometheus(tmp_path / "gap.json", cluster="c", account_from=["queue"])

    assert gpu_hours(reading)["a1"] == pytest.approx(4 * (2 + 1 / 12 + 2))
    assert reading.notices == ("55 minutes between samples of one series are unknown and count as nothing",)


def test_utilization_of_each_gpu_is_read_with_the_pod_that_holds_it(prometheus: str, tmp_path: Path) -> None:
    reply = fetch_range(prometheus, GPU_UTILIZATION, start=START, end=START + timedelta(hours=6))
    save_reply(reply, tmp_path / "used.json")

    usage = read_prometheus(tmp_path / "used.json", cluster="c").utilization

    by_gpu = usage.group_by("workload_id", "host", "gpu").agg(
        pl.col("utilization_ratio").mean(), pl.col("covers_s").sum()
    )
    assert sorted(by_gpu.rows()) == [
        ("nlp/run", "n1", "0", pytest.approx(0.9), 6 * 3600),
        ("nlp/run", "n1", "1", pytest.approx(0.1), 6 * 3600),
    ]


def test_windows_of_a_live_server_may_overlap(prometheus: str, tmp_path: Path) -> None:
    windows = [(0, 4), (2, 6)]
    for at, (first, last) in enumerate(windows):
        hours = START + timedelta(hours=first), START + timedelta(hours=last)
        save_reply(fetch_range(prometheus, GPUS_HELD, start=hours[0], end=hours[1]), tmp_path / f"{at}.json")

    runs = [read_prometheus(tmp_path / f"{at}.json", cluster="c").runs.drop("line") for at in range(2)]

    run = pl.concat(runs).unique().filter(pl.col("workload_id") == "nlp/run").sort("started_at")
    assert run["started_at"].dt.hour().to_list() == [0, 1, 2, 3, 4, 5]


def test_a_query_that_cannot_be_parsed_is_told_in_the_servers_words(prometheus: str) -> None:
    with pytest.raises(UnreadableLog, match=r"it answered with 400: bad_data: .*parse error"):
        fetch_range(prometheus, "sum(", start=START, end=START + timedelta(hours=1))


def test_a_query_without_series_gives_an_empty_reading(prometheus: str, tmp_path: Path) -> None:
    save_reply(fetch_range(prometheus, "no_such", start=START, end=START + timedelta(hours=1)), tmp_path / "none.json")

    reading = read_prometheus(tmp_path / "none.json", cluster="c")

    assert (reading.rows_read, reading.notices) == (0, ("the query found no series",))
