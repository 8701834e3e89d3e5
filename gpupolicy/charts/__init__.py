"""Frames in, pictures out: one look for dashboards, notebooks and reports."""

from gpupolicy.charts.budget import branches, budget_tree, queue_balances
from gpupolicy.charts.cover import COVER_TYPE, cover, span_words
from gpupolicy.charts.delivery import delivery_over_time, team_ranking
from gpupolicy.charts.figures import Figure, figures, headlines
from gpupolicy.charts.html import Html
from gpupolicy.charts.pyramid import pyramid_by_cluster
from gpupolicy.charts.rendering import png, show_in, svg, vega_bundle
from gpupolicy.charts.tables import queue_table, team_table, tree_rows, unmapped_note
from gpupolicy.charts.theme import path_words, program_hues

__all__ = [
    "COVER_TYPE",
    "Figure",
    "Html",
    "branches",
    "budget_tree",
    "cover",
    "delivery_over_time",
    "figures",
    "headlines",
    "path_words",
    "png",
    "program_hues",
    "pyramid_by_cluster",
    "queue_balances",
    "queue_table",
    "show_in",
    "span_words",
    "svg",
    "team_ranking",
    "team_table",
    "tree_rows",
    "unmapped_note",
    "vega_bundle",
]
