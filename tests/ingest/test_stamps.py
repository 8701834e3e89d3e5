"""Stamps of every common form, local times, and the hours that come twice or never."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpupolicy.errors import InvalidInput
from gpupolicy.ingest import Reading
from gpupolicy.ingest.moments import read_moments
from gpupolicy.ingest.slurm.durations import duration_s, durations_s

AT = datetime(2026, 3, 1, 8)


def read(text: str, *, timezone: str | None = "UTC", form: str = "auto") -> tuple[datetime | None, str | None]:
    moments = read_moments(pl.DataFrame({"x": [text]}), timezone=timezone, form=form)["x"]
    return moments.at[0], moments.fault[0]


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-01T08:00:00", "2026-03-01 08:00:00", "2026-03-01 08:00", "2026-03-01T08:00:00Z",
        "2026-03-01 08:00:00 UTC", "2026-03-01T10:00:00+02:00", "2026-03-01T03:00-0500", " 2026-03-01T08:00:00 ",
        "1772352000", "1772352000.0", "1772352000000", "1772352000000000", "1772352000000000000",
    ],
)  # fmt: skip
def test_every_common_form_is_the_same_moment(text: str) -> None:
    assert read(text) == (AT, None)


def test_moments_are_kept_to_the_millisecond() -> None:
    expected = AT + timedelta(milliseconds=124)

    assert read("2026-03-01T08:00:00.1239")[0] == expected
    assert read("1772352000.1239")[0] == expected
    assert read("1772352000123900")[0] == expected


@pytest.mark.parametrize("text", ["", "Unknown", "None", "N/A", "(null)"])
def test_a_word_for_nothing_is_no_moment_and_no_fault(text: str) -> None:
    assert read(text) == (None, None)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("03/04/2026 10:00", "ambiguous_date"),
        ("2026-13-01T00:00:00", "bad_time"),
        ("2026-02-30", "bad_time"),
        ("soon", "bad_time"),
        ("42", "bad_time"),
    ],
)
def test_what_is_no_moment_says_why(text: str, fault: str) -> None:
    assert read(text) == (None, fault)


def test_a_stated_format_makes_any_date_readable() -> None:
    assert read("01.03.2026 08:00", form="%d.%m.%Y %H:%M") == (AT, None)
    assert read("1.3.26 10:00 +0200", form="%d.%m.%y %H:%M %z") == (AT, None)
    assert read("03/04/2026", form="%d.%m.%Y") == (None, "ambiguous_date")


def test_a_local_time_needs_a_zone() -> None:
    assert read("2026-03-01T08:00:00", timezone=None) == (None, "naive_without_timezone")
    assert read("2026-03-01T08:00:00Z", timezone=None) == (AT, None)
    assert read("2026-03-01T09:00:00", timezone="Europe/Berlin") == (AT, None)


def test_the_hour_that_is_left_out_in_spring_does_not_exist() -> None:
    assert read("2026-03-08T02:30:00", timezone="America/New_York") == (None, "nonexistent_local_time")


def test_the_hour_that_comes_twice_has_two_moments() -> None:
    moments = read_moments(pl.DataFrame({"x": ["2026-11-01T01:30:00"]}), timezone="America/New_York")["x"]

    assert moments.at[0] == datetime(2026, 11, 1, 5, 30)
    assert moments.second[0] == datetime(2026, 11, 1, 6, 30)


@given(
    st.datetimes(datetime(1990, 1, 1), datetime(2037, 1, 1)).map(lambda moment: moment.replace(microsecond=0)),
    st.sampled_from(["Europe/Berlin", "America/Los_Angeles", "Asia/Kathmandu", "Australia/Lord_Howe"]),
)
def test_a_moment_is_found_again_from_its_local_time(moment: datetime, zone: str) -> None:
    local = moment.replace(tzinfo=UTC).astimezone(ZoneInfo(zone))
    moments = read_moments(pl.DataFrame({"x": [f"{local:%Y-%m-%dT%H:%M:%S}"]}), timezone=zone)["x"]

    assert moment in {moments.at[0], moments.second[0]}


def test_an_unknown_zone_is_refused(sacct: Callable[..., Reading]) -> None:
    with pytest.raises(InvalidInput, match="'Mars/Base' is no time zone"):
        sacct("JobID|Submit|Start|End|AllocTRES\n", timezone="Mars/Base")


def test_elapsed_time_settles_which_of_two_hours_was_meant(sacct: Callable[..., Reading]) -> None:
    reading = sacct(
        "JobID|State|Submit|Start|End|Elapsed|AllocTRES\n"
        "over|FAILED|2026-10-31T12:00:00|2026-11-01T01:30:00|2026-11-01T01:15:00|00:45:00|gres/gpu=1\n"
        "long|FAILED|2026-10-31T12:00:00|2026-11-01T01:10:00|2026-11-01T01:40:00|01:30:00|gres/gpu=1\n"
        "open|FAILED|2026-10-31T12:00:00|2026-11-01T01:10:00|2026-11-01T01:40:00|00:30:00|gres/gpu=1\n"
        "asleep|FAILED|2026-10-31T12:00:00|2026-11-01T01:10:00|2026-11-01T01:40:00|01:00:00|gres/gpu=1\n",
        timezone="America/Los_Angeles",
    )

    hours = (pl.col("ended_at") - pl.col("started_at")).dt.total_minutes()
    assert reading.runs.select("workload_id", hours).rows()[:3] == [("over", 45), ("long", 90), ("open", 30)]
    assert reading.flagged["workload_id"].to_list() == ["open", "asleep"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("00:00:36", 36),
        ("1-02:30:00", 95400),
        ("45-00:00:00", 3888000),
        ("59:59.123", 3599.123),
        ("00:35.042", 35.042),
        ("UNLIMITED", None),
        ("-00:00:16", None),
        ("", None),
    ],
)
def test_durations_of_days_and_of_milliseconds(text: str, seconds: float | None) -> None:
    whole = pl.DataFrame({"text": [text]}).select(durations_s(pl.col("text"))).item()

    assert duration_s(text) == (None if seconds is None else pytest.approx(seconds))
    assert whole == (None if seconds is None else int(seconds))
