from dataclasses import dataclass
from datetime import datetime

import polars as pl
import pytest
from charts.specs import sentence

from gpupolicy import charts
from gpupolicy.charts import theme

CLUSTERS = pl.DataFrame(
    {
        "cluster": ["h100", "b300", "all clusters"],
        "availability": [0.97, 1.0, 0.975],
        "occupancy": [0.98, 0.5, 0.9],
        "impact": [0.8, None, 0.8],
        "utilization": [0.6, None, 0.6],
        "oversubscription": [2.44, None, 2.0],
    }
)


@dataclass(frozen=True)
class Review:
    nodes: pl.DataFrame
    quarter: str = "2026Q3"
    node: str = "lab"
    starts_at: datetime = datetime(2026, 7, 1)
    ends_at: datetime = datetime(2026, 9, 30, 18)
    teams_ratio: float | None = 0.987
    teams_at_95: int = 13
    team_count: int = 15
    worst_team: str | None = "lab/vision/robotics"
    worst_ratio: float | None = 0.904


def review(*, strict_ratio: float | None = 0.987, delivered: float = 820.0, free: float = 180.0) -> Review:
    row = {"path": "lab", "depth": 0, "strict_ratio": strict_ratio, "delivered_gpu_h": delivered, "free_gpu_h": free}
    nodes = pl.DataFrame([row], schema_overrides={"strict_ratio": pl.Float64})
    return Review(nodes, teams_ratio=strict_ratio)


def test_every_level_of_every_cluster_has_its_figure_or_says_it_was_not_measured() -> None:
    spec = charts.pyramid_by_cluster(CLUSTERS).to_dict()
    (cells,) = spec["datasets"].values()

    figures = {(cell["cluster"], cell["level"]): cell["figure"] for cell in cells}

    assert figures["h100", "availability"] == "97.0%"
    assert figures["b300", "utilization"] == figures["b300", "impact"] == "not measured"
    assert list(dict.fromkeys(cell["label"] for cell in cells)) == [
        "h100 (demand 2.4 x)",
        "b300 (demand unknown)",
        "all clusters (demand 2.0 x)",
    ]


def test_a_lone_cluster_is_not_summed_up_with_itself() -> None:
    spec = charts.pyramid_by_cluster(CLUSTERS.filter(pl.col("cluster") != "b300")).to_dict()
    (cells,) = spec["datasets"].values()

    assert {cell["cluster"] for cell in cells} == {"h100"}


def test_without_a_cluster_the_pyramid_says_what_to_do() -> None:
    assert "gpupolicy ingest capacity" in sentence(charts.pyramid_by_cluster(CLUSTERS.clear()))


def test_the_headlines_are_those_that_leadership_asks_for() -> None:
    delivered, teams, worst, free = charts.headlines(review())

    assert (delivered.value, delivered.label) == ("99%", "of owed GPU time delivered")
    assert (teams.value, teams.label) == ("13 of 15", "teams got 95% or more of what they were owed")
    assert (worst.value, worst.detail) == ("90%", "vision / robotics")
    assert (free.value, free.label) == ("18%", "of its GPU time was free (charged to nobody)")


def test_a_ratio_below_the_mark_stands_out_among_the_headlines() -> None:
    shown = charts.figures(charts.headlines(review())).text

    assert shown.count('<b class="gp-short">') == 1
    assert '<b class="gp-short">90%</b>' in shown


def test_nothing_owed_and_nothing_used_have_no_ratio() -> None:
    delivered, _, _, free = charts.headlines(review(strict_ratio=None, delivered=0.0, free=0.0))

    assert (delivered.value, delivered.label) == ("-", "nothing was owed: no entitlement, or no demand")
    assert free.value == "-"


@pytest.mark.parametrize(
    ("ratio", "words", "finer"),
    [
        (0.9496, "94%", "94.9%"),
        (0.9449, "94%", "94.5%"),
        (0.9996, "99%", "99.9%"),
        (1.0, "100%", "100.0%"),
        (0.978, "98%", "97.8%"),
        (0.29, "29%", "29.0%"),
        (None, "-", "-"),
    ],
)
def test_a_ratio_is_never_rounded_up_to_a_mark_it_misses(ratio: float | None, words: str, finer: str) -> None:
    assert theme.percent(ratio) == words
    assert theme.percent(ratio, digits=1) == finer


def test_amounts_for_people_have_thousands_separators_and_small_ones_a_digit() -> None:
    assert [theme.whole(amount) for amount in (1234567.8, 12.4, 8.04, 0.0, None)] == [
        "1,234,568",
        "12",
        "8.0",
        "0",
        "-",
    ]
    assert [theme.share(ratio) for ratio in (0.35, 0.125, 0.0025, 1.0)] == ["35%", "12.5%", "0.25%", "100%"]


def test_the_team_table_tells_what_is_missing_in_gpu_hours() -> None:
    teams = pl.DataFrame(
        {
            "path": ["lab/vision/robotics", "lab/vision/<b>"],
            "owed_gpu_h": [30_240.0, 0.0],
            "delivered_gpu_h": [21_840.0, 0.0],
            "strict_ratio": [0.75, None],
        }
    )

    table = charts.team_table(teams).text

    assert (
        '<tr class="gp-short"><td>vision / robotics</td><td>30,240</td><td>21,840</td><td>7,560</td><td>75.0%</td></tr>'
        in table
    )
    assert "<tr><td>vision / &lt;b&gt;</td><td>0</td><td>0</td><td>-</td><td>-</td></tr>" in table


def test_the_queue_table_lists_the_first_leaves_only() -> None:
    nodes = pl.DataFrame(
        {
            "path": ["lab", "lab/a", "lab/b", "lab/c"],
            "is_leaf": [False, True, True, True],
            "queue_rank": [None, 2, 1, 3],
            "balance": [1.0, 0.5, 0.25, None],
            "entitled_gpus": [80.0, 20.0, 8.0, 0.0],
        }
    )

    table = charts.queue_table(nodes, first=2).text

    assert "<th>balance (low goes first)</th>" in table
    body = table.split("<tbody>")[1]
    assert body.startswith('<tr><td>1</td><td class="gp-words">b</td><td>0.25</td><td>8.0</td></tr>')
    assert body.count("<tr>") == 2


def test_usage_outside_the_tree_is_told_and_so_is_its_absence() -> None:
    assert "<strong>1,234 GPU-hours</strong> of this span" in charts.unmapped_note(1234.4).text
    assert "Every GPU-hour of this span belongs to a node" in charts.unmapped_note(0.0).text


def test_a_cover_names_quarter_node_and_span_for_people_and_for_the_report() -> None:
    shown = charts.cover(review())._repr_mimebundle_()

    assert shown["text/plain"] == "2026Q3 · lab · 1 Jul 2026, 00:00 to 30 Sep 2026, 18:00 (UTC)"
    assert shown[charts.COVER_TYPE] == {"quarter": "2026Q3", "ends_on": "2026-09-30"}


def test_a_researcher_has_no_teams_and_is_shown_with_their_own_ratio() -> None:
    row = {"path": "lab/a/t/ada", "depth": 3, "strict_ratio": 0.91, "delivered_gpu_h": 8.0, "free_gpu_h": 2.0}

    delivered, *_ = charts.headlines(Review(pl.DataFrame([row]), node="lab/a/t/ada", teams_ratio=None))

    assert (delivered.value, delivered.detail) == ("91%", "a / t / ada")
