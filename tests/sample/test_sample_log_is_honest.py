"""What no scheduler could have done must not stand in the log: of four days made anew, and of the quarter."""

from __future__ import annotations

import polars as pl
from sample.log import CAP_S, GPUS_PER_HOST, SampleLog


def held_s() -> pl.Expr:
    return (pl.col("End") - pl.col("Start")).dt.total_seconds()


def protected_s() -> pl.Expr:
    return pl.col("minimum_runtime_s").clip(upper_bound=CAP_S)


def test_no_host_ever_holds_more_gpus_than_it_has(log: SampleLog) -> None:
    stays = log.stays
    edges = pl.concat(
        [stays.select("host", at="Start", step="on_host"), stays.select("host", at="until", step=-pl.col("on_host"))]
    )

    held = edges.sort("host", "at", "step").with_columns(held=pl.col("step").cum_sum().over("host"))

    assert held["held"].min() == 0
    assert held["held"].max() == GPUS_PER_HOST


def test_a_host_or_more_is_taken_whole(log: SampleLog) -> None:
    hosts = log.started.select("gpus", hosts=pl.col("hosts").list.len(), fit=(pl.col("gpus") / 8).ceil())

    assert hosts.filter(pl.col("hosts") != pl.col("fit")).is_empty()
    assert hosts.filter((pl.col("gpus") > GPUS_PER_HOST) & (pl.col("gpus") % GPUS_PER_HOST != 0)).is_empty()


def test_work_runs_on_hosts_of_the_type_it_was_given(log: SampleLog) -> None:
    known = log.stays.join(log.hosts, on="host", how="left", suffix="_of_host")

    assert known.filter(pl.col("gpu_type").ne_missing(pl.col("gpu_type_of_host"))).is_empty()
    assert known.filter(pl.col("Cluster").ne_missing(pl.col("cluster"))).is_empty()
    assert known.filter(pl.col("Start") < pl.col("valid_from")).is_empty()


def test_nothing_runs_on_a_host_that_is_out(log: SampleLog) -> None:
    out = log.outages.filter(pl.col("state") != "draining")

    both = log.stays.join(out, on="host").filter(
        (pl.col("Start") < pl.col("end").fill_null(log.cut)) & (pl.col("until") > pl.col("start"))
    )

    assert out.height > 0
    assert both.is_empty()


def test_nothing_starts_on_a_draining_host(log: SampleLog) -> None:
    draining = log.outages.filter(pl.col("state") == "draining")

    both = log.stays.join(draining, on="host").filter(
        pl.col("Start").is_between("start", pl.col("end").fill_null(log.cut), closed="left")
    )

    assert draining.height > 0
    assert both.is_empty()


def test_a_hosts_states_follow_each_other_without_overlap(log: SampleLog) -> None:
    following = log.outages.sort("host", "start").with_columns(next_start=pl.col("start").shift(-1).over("host"))

    assert following.filter(pl.col("end") > pl.col("next_start")).is_empty()
    assert following.filter(pl.col("end").is_null() & pl.col("next_start").is_not_null()).is_empty()
    assert following.filter(pl.col("end") <= pl.col("start")).is_empty()


def test_no_funded_run_is_taken_away_before_its_minimum_runtime(log: SampleLog) -> None:
    taken_away = log.started.filter(
        pl.col("State").is_in(["PREEMPTED", "REQUEUED", "CANCELLED by 0"]) & ~pl.col("is_free")
    )

    assert taken_away.height > 10
    assert taken_away.filter(held_s() < protected_s()).is_empty()


def test_a_node_failure_comes_with_a_host_that_went_down(log: SampleLog) -> None:
    failed = log.stays.filter(pl.col("State") == "NODE_FAIL")
    down = log.outages.filter(pl.col("state") == "down").select("host", End="start")

    explained = failed.join(down, on=["host", "End"], how="semi")

    assert failed.height > 0
    assert set(explained["JobIDRaw"]) == set(failed["JobIDRaw"])


def test_only_funded_work_displaces_and_takes_the_place_at_once(log: SampleLog) -> None:
    displaced = log.stays.filter(pl.col("State") == "PREEMPTED")
    funded = log.stays.filter(~pl.col("is_free")).select("host", End="Start")

    replaced = displaced.join(funded, on=["host", "End"], how="semi")

    key = ["Cluster", "JobIDRaw", "Submit"]
    assert displaced.filter(pl.col("is_free")).height > 10
    assert replaced.select(key).unique().height == displaced.select(key).unique().height


def test_moments_come_in_order_and_none_after_the_cut(log: SampleLog) -> None:
    runs = log.runs

    assert runs.filter(pl.col("Eligible") < pl.col("Submit")).is_empty()
    assert runs.filter(pl.col("Start") < pl.col("Eligible")).is_empty()
    assert runs.filter(pl.col("End") < pl.col("Start").fill_null(pl.col("Submit"))).is_empty()
    assert runs["Submit"].max() == log.cut
    assert runs["End"].max() <= log.cut


def test_a_workload_holds_gpus_once_at_a_time_and_is_requeued_when_displaced(log: SampleLog) -> None:
    key = ["Cluster", "JobIDRaw"]
    runs = log.runs.sort(*key, "Submit").with_columns(
        last_end=pl.col("End").shift(1).over(key), last_state=pl.col("State").shift(1).over(key)
    )

    again = runs.filter(pl.col("last_end").is_not_null())

    assert again.height > 10
    assert set(again["last_state"]) <= {"PREEMPTED", "REQUEUED", "NODE_FAIL"}
    assert again.filter(pl.col("Submit") != pl.col("last_end")).is_empty()
    assert again.filter((pl.col("Eligible") - pl.col("Submit")).dt.total_seconds() != 120).is_empty()
    assert again.filter(pl.col("is_free") & ~pl.col("is_resumable")).is_empty()


def test_waiting_and_running_rows_say_so_as_sacct_does(log: SampleLog) -> None:
    states = log.runs.group_by(pl.col("State").str.extract(r"^(\w+)")).agg(
        never_started=pl.col("Start").is_null().sum(), still_open=pl.col("End").is_null().sum(), rows=pl.len()
    )

    by_state = {row["State"]: row for row in states.to_dicts()}

    assert by_state["PENDING"]["never_started"] == by_state["PENDING"]["still_open"] == by_state["PENDING"]["rows"]
    assert by_state["RUNNING"]["still_open"] == by_state["RUNNING"]["rows"]
    assert by_state["COMPLETED"]["never_started"] == by_state["COMPLETED"]["still_open"] == 0
    assert by_state["CANCELLED"]["never_started"] > 0
