"""Budget review: the tree of budgets beside what was delivered of what was owed, for any node and span."""

# Panel's widgets and layouts are made by constructors without types.
# mypy: allow-untyped-calls

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time
from html import escape
from pathlib import Path
from typing import Any

import panel as pn
import panel_material_ui as pmui
import param
import polars as pl
from panel.viewable import Viewable
from panel_material_ui.template.base import Page

from gpupolicy import charts, cycle
from gpupolicy.errors import GpuPolicyError

ReviewOf = Callable[..., cycle.Review]
IN_URL = {"node": "node", "starts_on": "from", "ends_on": "to", "cluster": "cluster"}
COLUMNS = {
    "node": "node",
    "share": "share of parent",
    "entitlement": "of all capacity",
    "gpus": "GPUs",
    "gpu_hours": "GPU-hours",
    "delivered": "delivered of owed",
}
WIDTHS = {"share": 68, "entitlement": 72, "gpus": 62, "gpu_hours": 84, "delivered": 96}
# Over the design's own rules, which are as specific: hence important.
TABLE_STYLE = """
.tabulator { border: none; background: white; font-size: 13px !important; }
.tabulator .tabulator-header .tabulator-col { font-weight: 500 !important; color: #5b6875 !important; }
.tabulator .tabulator-header .tabulator-col .tabulator-col-content { padding: 4px 6px !important; }
.tabulator .tabulator-row { background: white !important; color: #1b2733 !important; min-height: 28px !important;
  border-bottom: 1px solid #eef1f4; cursor: pointer; }
.tabulator .tabulator-row .tabulator-cell { padding: 4px 6px !important; height: 28px !important; }
.tabulator .tabulator-row:hover { background: #f4f6f8 !important; }
.tabulator .tabulator-row.tabulator-selected { background: #dcebf6 !important; font-weight: 600; }
"""
TREE_HEIGHT = 860
GAP = "16px"
PUBLISHED = "published.duckdb"
PANEL = {"p": 2.5, "overflowX": "auto", "border": "1px solid #dfe4e9", "borderRadius": "6px", "boxShadow": "none"}
THEME = {
    "palette": {"primary": {"main": "#1b2733"}, "background": {"default": "#f4f6f8"}},
    "typography": {"fontFamily": '-apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'},
}


class State(param.Parameterized):
    """What is looked at, and the review of it. A look that fails keeps the last good review and says why."""

    node = param.String()
    starts_on = param.CalendarDate()
    ends_on = param.CalendarDate(doc="Not included.")
    cluster = param.String(default=cycle.ALL_CLUSTERS)
    review = param.Parameter()
    shown = param.Dict(doc="The choice that the review answers.")
    trouble = param.String()

    def __init__(self, review_of: ReviewOf) -> None:
        first = review_of()
        self.review_of = review_of
        self.first_starts_at, self.first_ends_at = first.starts_at, first.ends_at
        self.clusters = [cycle.ALL_CLUSTERS, *first.pyramid["cluster"].to_list()[:-1]]
        starts_on, ends_on = first.starts_at.date(), first.ends_at.date()
        super().__init__(review=first, node=first.node, starts_on=starts_on, ends_on=ends_on)
        self.shown = self._choice(first)

    @param.depends("node", "starts_on", "ends_on", "cluster", watch=True)
    def look(self) -> None:
        try:
            review = self.review_of(
                node=self.node,
                starts_at=_edge(self.starts_on, self.first_starts_at),
                ends_at=_edge(self.ends_on, self.first_ends_at),
                cluster=None if self.cluster == cycle.ALL_CLUSTERS else self.cluster,
            )
        except GpuPolicyError as error:
            self.trouble = str(error)
        else:
            self.param.update(review=review, shown=self._choice(review), trouble="")

    def refuse(self, asked: dict[str, Any]) -> None:
        """An address of the page that cannot be followed."""
        words = ", ".join(f"{IN_URL[name]}={value}" for name, value in asked.items())
        self.trouble = f"The address of this page asks for {words}, which cannot be shown."

    def _choice(self, review: cycle.Review) -> dict[str, Any]:
        return {name: getattr(self, name) for name in IN_URL} | {"node": review.node}


# Views: each of the state, each follows it


def choosers(state: State) -> Viewable:
    """Node, span and cluster: what can be asked for."""
    nodes = {charts.path_words(path): path for path in state.review.nodes["path"]}
    node = pmui.AutocompleteInput(
        label="Budget node",
        options=nodes,
        min_characters=0,
        case_sensitive=False,
        search_strategy="includes",
        width=340,
        size="small",
    )
    starts_on = pmui.DatePicker(label="From (UTC)", width=180, size="small")
    ends_on = pmui.DatePicker(label="Until (not included)", width=180, size="small")
    cluster = pmui.Select(label="Cluster", options=state.clusters, width=200, size="small")
    widgets = {"node": node, "starts_on": starts_on, "ends_on": ends_on, "cluster": cluster}
    for name, widget in widgets.items():
        _hold_together(state, name, widget)
    return pn.FlexBox(*widgets.values(), align_items="center", gap="6px", sizing_mode="stretch_width")


def trouble(state: State) -> Viewable:
    """Why the last look failed, if it did; the figures below it are then those of the look before."""
    words = pn.bind(lambda why: _as_html(f"{why}. Shown below is what was looked at before."), state.param.trouble)
    visible = state.param.trouble.rx.bool()
    return pmui.Alert(pn.pane.HTML(words), severity="warning", visible=visible, sizing_mode="stretch_width")


def headlines(state: State) -> Viewable:
    """The four figures of the chosen node and span, large."""
    return _html(state, lambda review: charts.figures(charts.headlines(review)).text)


def budgets(state: State) -> Viewable:
    """The budget tree as a table; a click on a row chooses its node."""
    rows = charts.tree_rows(state.review.nodes, state.review.node)
    table = pn.widgets.Tabulator(
        rows.to_pandas(),
        titles=COLUMNS,
        widths=WIDTHS,
        hidden_columns=["path", "owner"],
        text_align=dict.fromkeys(WIDTHS, "right"),
        header_align=dict.fromkeys(WIDTHS, "right"),
        formatters={"delivered": {"type": "html"}},
        configuration={"columnDefaults": {"headerWordWrap": True, "headerSort": False}},
        layout="fit_columns",
        selectable=1,
        disabled=True,
        show_index=False,
        max_height=TREE_HEIGHT,
        sizing_mode="stretch_width",
        stylesheets=[TABLE_STYLE],
    )
    table.on_click(lambda click: setattr(state, "node", table.value["path"][click.row]))
    pn.bind(lambda review: _refill(table, review), state.param.review, watch=True)
    _refill(table, state.review)
    return table


def delivery(state: State) -> Viewable:
    """Delivered against owed of the chosen node, over the chosen span."""
    return _chart(state, lambda review: charts.delivery_over_time(review.hourly))


def teams(state: State) -> Viewable:
    """All teams by what they got of what they were owed."""
    return _chart(state, lambda review: charts.team_ranking(review.teams, hues=_hues(review)))


def pyramid(state: State) -> Viewable:
    """The four levels for every cluster."""
    return _chart(state, lambda review: charts.pyramid_by_cluster(review.pyramid), is_wide=False)


def queue(state: State) -> Viewable:
    """The balances below the chosen node: who goes first there."""
    return _chart(
        state,
        lambda review: charts.queue_balances(review.nodes.filter(pl.col("parent") == review.node), hues=_hues(review)),
    )


def unmapped(state: State) -> Viewable:
    """What no node answers for."""
    return _html(state, lambda review: charts.unmapped_note(review.unmapped_gpu_h).text)


def app(review_of: ReviewOf) -> Viewable:
    """The page. `review_of` takes node, starts_at, ends_at, cluster, all optional, and gives a review."""
    try:
        state = State(review_of)
    except GpuPolicyError as error:
        why = pn.pane.HTML(_as_html(str(error)))
        return _page(pmui.Alert(why, title="There is nothing to show yet", severity="info"), title="budget review")
    if pn.state.location:
        pn.state.location.sync(state, IN_URL, on_error=state.refuse)
    now = _side_by_side(
        _panel(_heading(state, "Budgets: click a row to look at it"), budgets(state)),
        pmui.Column(
            _panel(_heading(state, _delivery_title), delivery(state)),
            _panel(_heading(state, "What each team got of what it was owed"), teams(state)),
            sx={"gap": GAP},
        ),
    )
    more = _side_by_side(
        _panel(_heading(state, _queue_title), queue(state)),
        _panel(_heading(state, "Hardware: the pyramid of every cluster"), pyramid(state), unmapped(state)),
    )
    title = f"budget review {state.review.quarter}"
    return _page(choosers(state), trouble(state), _panel(headlines(state)), now, more, title=title)


# How the views hang together


def _hold_together(state: State, name: str, widget: Any) -> None:  # noqa: ANN401 - widgets share no typed base
    """The widget follows what is shown, not what was asked for in vain; a choice in it is a wish."""

    def show(shown: Mapping[str, Any]) -> None:
        widget.value = shown[name]

    def wish(event: param.parameterized.Event) -> None:
        if event.new:
            state.param.update(**{name: event.new})

    show(state.shown)
    pn.bind(show, state.param.shown, watch=True)
    widget.param.watch(wish, "value")


def _html(state: State, words: Callable[[cycle.Review], str]) -> Viewable:
    return pn.pane.HTML(pn.bind(words, state.param.review), sizing_mode="stretch_width")


def _chart(state: State, draw: Callable[[cycle.Review], Any], *, is_wide: bool = True) -> Viewable:
    def drawn(review: cycle.Review) -> Any:  # noqa: ANN401 - any of Altair's charts
        return draw(review).properties(width="container") if is_wide else draw(review)

    return pn.pane.Vega(pn.bind(drawn, state.param.review), sizing_mode="stretch_width")


def _refill(table: pn.widgets.Tabulator, review: cycle.Review) -> None:
    rows = charts.tree_rows(review.nodes, review.node).to_pandas()
    if not rows.equals(table.value):
        table.value = rows
    table.selection = rows.index[rows["path"] == review.node].to_list()


def _hues(review: cycle.Review) -> dict[str, str]:
    return charts.program_hues(review.nodes["path"].to_list())


def _delivery_title(review: cycle.Review) -> str:
    return f"Delivered against owed: {charts.path_words(review.node)}"


def _queue_title(review: cycle.Review) -> str:
    return f"Who goes first below {charts.path_words(review.node)}, by the last {review.lookback_h // 24} days"


def _edge(day: date, observed: datetime) -> datetime:
    # The usage of a quarter may begin or end within a day; that day then stands for this very hour.
    return observed if day == observed.date() else datetime.combine(day, time(), tzinfo=UTC)


def _panel(*objects: Viewable) -> Viewable:
    return pmui.Paper(*objects, sx=PANEL, sizing_mode="stretch_width")


def _heading(state: State, words: str | Callable[[cycle.Review], str]) -> Viewable:
    def heading(review: cycle.Review) -> str:
        said = words if isinstance(words, str) else words(review)
        return f'<h2 style="font-size: 16px; font-weight: 600; margin: 0">{escape(said)}</h2>'

    return _html(state, heading)


def _as_html(message: str) -> str:
    # Messages repeat what an address or a policy file said: escaped, and never read as Markdown.
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(message))


def _side_by_side(left: Viewable, right: Viewable) -> Viewable:
    halves = (pmui.Grid(left, size={"xs": 12, "lg": 5}), pmui.Grid(right, size={"xs": 12, "lg": 7}))
    return pmui.Grid(*halves, container=True, spacing=2, sizing_mode="stretch_width")


def _page(*main: Viewable, title: str) -> Viewable:
    body = pmui.Column(*main, sx={"gap": GAP, "p": 2}, sizing_mode="stretch_width")
    return Page(title=f"gpupolicy · {title}", main=[body], theme_toggle=False, theme_config=THEME, main_width=1600)


# As a served page


@pn.cache(max_items=200, policy="LRU")
def _review(store: str, policy: str | None, _version: tuple[int, ...], **asked: Any) -> cycle.Review:  # noqa: ANN401
    return cycle.review(Path(store), Path(policy) if policy else None, **asked)


def review_of_store(store: str, policy: str | None) -> ReviewOf:
    """Reviews of one store, kept until the store or the policy file changes."""
    files = [Path(store) / PUBLISHED, *([Path(policy)] if policy else [])]

    def review_of(**asked: Any) -> cycle.Review:  # noqa: ANN401 - passed on to cycle.review
        version = tuple(path.stat().st_mtime_ns for path in files if path.exists())
        return _review(store, policy, version, **asked)

    return review_of


if pn.state.served:
    pn.extension("vega", "tabulator")
    app(review_of_store(os.environ["GPUPOLICY_STORE"], os.environ.get("GPUPOLICY_POLICY"))).servable()
