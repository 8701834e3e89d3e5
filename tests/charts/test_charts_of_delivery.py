from datetime import datetime, timedelta

import polars as pl
import pytest
from charts.specs import column, marks, rows, sentence

from gpupolicy import charts
from gpupolicy.charts import theme
from gpupolicy.charts.theme import Picture

BEGIN = datetime(2026, 7, 1)
SHADE = 2  # layers of delivery over time: free, delivered, shade, entitlement, owed, what is pointed at


def hourly(*, owed: list[float], delivered: list[float], free: float = 0.0) -> pl.DataFrame:
    hours = [BEGIN + timedelta(hours=hour) for hour in range(len(owed))]
    return pl.DataFrame(
        {
            "hour": hours,
            "entitled_gpus": 100.0,
            "demand_gpus": 250.0,
            "owed_gpus": owed,
            "delivered_gpus": delivered,
            "free_gpus": free,
        }
    )


def ranked(**ratios: float | None) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "path": [f"lab/{name.replace('_', '/')}" for name in ratios],
            "owed_gpu_h": 1000.0,
            "delivered_gpu_h": 990.0,
            "strict_ratio": list(ratios.values()),
        },
        schema_overrides={"strict_ratio": pl.Float64},
    )


def y_title(picture: Picture) -> str:
    return str(picture.to_dict()["layer"][0]["encoding"]["y"]["title"])


def test_delivered_is_an_area_owed_and_entitlement_are_lines() -> None:
    picture = charts.delivery_over_time(hourly(owed=[10.0] * 24, delivered=[9.0] * 24))

    assert marks(picture) == ["area", "area", "area", "line", "line", "rect"]
    assert y_title(picture) == "GPUs (mean over the hour)"
    assert picture.to_dict()["description"] == "Delivered against owed GPUs, mean over each hour."


def test_a_span_of_many_days_is_averaged_by_day_and_one_of_years_by_week() -> None:
    quarter = charts.delivery_over_time(hourly(owed=[10.0] * 24 * 92, delivered=[9.0] * 24 * 92))
    years = charts.delivery_over_time(hourly(owed=[10.0] * 24 * 600, delivered=[9.0] * 24 * 600))

    assert (y_title(quarter), len(rows(quarter))) == ("GPUs (mean over the day)", 92 + 1)
    assert (y_title(years), len(rows(years))) == ("GPUs (mean over the week)", 86 + 1)


def test_the_shade_shows_what_was_missing_even_on_a_day_that_made_up_for_it() -> None:
    half_and_half = [5.0] * 12 + [15.0] * 12
    picture = charts.delivery_over_time(hourly(owed=[10.0] * 24 * 30, delivered=half_and_half * 30))

    day = rows(picture, layer=SHADE)[0]

    assert (day["owed_gpus"], day["delivered_gpus"]) == (10.0, 10.0)
    assert (day["delivered_of_owed_gpus"], day["missing_gpus"]) == (7.5, 2.5)


def test_free_time_hangs_below_zero_and_is_never_inside_what_was_delivered() -> None:
    picture = charts.delivery_over_time(hourly(owed=[10.0] * 24, delivered=[9.0] * 24, free=4.0))

    assert set(column(picture, "free_below_gpus")) == {-4.0}
    assert set(column(picture, "delivered_gpus")) == {9.0}
    axis = picture.to_dict()["layer"][0]["encoding"]["y"]["axis"]
    assert axis["labelExpr"] == "format(abs(datum.value), ',')"


def test_moments_are_drawn_in_utc_wherever_the_reader_sits() -> None:
    picture = charts.delivery_over_time(hourly(owed=[10.0] * 24, delivered=[9.0] * 24))

    assert column(picture, "hour")[0].startswith("2026-07-01T00:00:00")
    assert column(picture, "hour")[0].endswith(("Z", "+00:00", "+0000"))
    assert picture.to_dict()["layer"][0]["encoding"]["x"]["scale"] == {"type": "utc"}


def test_the_figures_of_a_step_are_told_without_a_selection_that_would_call_the_server() -> None:
    spec = charts.delivery_over_time(hourly(owed=[10.0] * 24, delivered=[9.0] * 24)).to_dict()

    titles = [one["title"] for one in spec["layer"][-1]["encoding"]["tooltip"]]

    assert titles[:4] == ["hour", "owed GPUs", "delivered GPUs", "owed, not delivered"]
    assert "params" not in spec


def test_teams_are_ranked_and_those_below_the_mark_stand_out() -> None:
    teams = ranked(vision_video=0.999, language_evaluation=0.9496, vision_robotics=1.0)

    picture = charts.team_ranking(teams, hues={})

    assert column(picture, "label", layer=1) == ["vision / robotics", "vision / video", "language / evaluation"]
    assert column(picture, "figure", layer=1) == ["100.0%", "99.9%", "94.9%"]
    assert column(picture, "stem", layer=1) == [theme.FAINT, theme.FAINT, theme.SHORTFALL]


@pytest.mark.parametrize(("lowest", "begins_at"), [(0.99, 0.9), (0.934, 0.9), (0.72, 0.7), (0.0, 0.0)])
def test_the_axis_of_teams_begins_below_the_lowest(lowest: float, begins_at: float) -> None:
    spec = charts.team_ranking(ranked(a_x=1.0, b_y=lowest), hues={}).to_dict()

    domains = [layer["encoding"]["x"]["scale"]["domain"] for layer in spec["layer"]]

    assert domains == [[begins_at, 1]] * 4


def test_teams_that_were_owed_nothing_are_left_out() -> None:
    picture = charts.team_ranking(ranked(a_x=None, b_y=0.97), hues={})

    assert column(picture, "path", layer=1) == ["lab/b/y"]


def test_empty_frames_give_a_sentence_that_helps() -> None:
    nothing = charts.delivery_over_time(hourly(owed=[], delivered=[]))
    nobody = charts.team_ranking(ranked(a_x=None), hues={})

    assert sentence(nothing).startswith("No GPU time was measured in this span: widen it")
    assert sentence(nobody) == "No team was owed GPU time in this span."
