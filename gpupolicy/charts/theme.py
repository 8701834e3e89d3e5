"""The one look of all pictures: type, colour, number formats and sizes, for pages, notebooks and reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import altair as alt
import polars as pl

from gpupolicy.domain import WELL_SERVED

# Fonts that machines have: none is fetched. Ends in a generic family, because the renderer of PNGs draws
# no text at all if it finds none of the names.
FONT: Final = '-apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, "Liberation Sans", sans-serif'

INK: Final = "#1b2733"
MUTED: Final = "#5b6875"
FAINT: Final = "#dfe4e9"

# What happened to GPU time wears these and nothing else does (a light blue and Okabe and Ito's
# vermilion: told apart under every common form of colour blindness, and by lightness in a grey print).
DELIVERED: Final = "#6aaed6"
SHORTFALL: Final = "#d55e00"
FREE: Final = "#cfcabd"
OWED: Final = INK
ENTITLED: Final = "#6f7c89"

# Programs wear these (Paul Tol's "muted" scheme, made for colour-blind readers), in the order of the tree.
PROGRAM_HUES: Final = (
    "#332288",
    "#44aa99",
    "#cc6677",
    "#999933",
    "#88ccee",
    "#882255",
    "#117733",
    "#ddcc77",
    "#aa4499",
)

GPUS_FORMAT: Final = ",.0f"
PERCENT_FORMAT: Final = ".0%"

WELL_SERVED_RATIO: Final = float(WELL_SERVED)

WIDTH: Final = 860
HEIGHT: Final = 320
ROW_HEIGHT: Final = 26
EMPTY_HEIGHT: Final = 120
TEN: Final = 10
MAX_STEPS: Final = 500  # a page of 900 points cannot show more; Altair refuses 5,000 rows

Picture = alt.Chart | alt.LayerChart | alt.FacetChart


def look(chart: Picture, description: str) -> Picture:
    """The chart in the house's look, with a sentence that stands for it where it cannot be seen."""
    dressed: Picture = chart.configure(**_config()).properties(description=description)
    return dressed


def empty(sentence: str) -> Picture:
    """What stands in the place of a chart that has nothing to show: a sentence that says why."""
    words = alt.Chart(pl.DataFrame({"sentence": [sentence]}), height=EMPTY_HEIGHT)
    return look(words.mark_text(fontSize=14, color=MUTED).encode(text="sentence:N"), sentence)


def program_hues(paths: Sequence[str]) -> dict[str, str]:
    """The colour of every path: that of its program, by the program's place in the whole tree.

    Always give the whole tree, so that a program has one colour in every picture; the root is grey.
    """
    programs = list(dict.fromkeys(_program(path) for path in paths if "/" in path))
    hues = {name: PROGRAM_HUES[place % len(PROGRAM_HUES)] for place, name in enumerate(programs)}
    return {path: hues[_program(path)] if "/" in path else MUTED for path in paths}


def percent(ratio: float | None, *, digits: int = 0) -> str:
    """A ratio for people, rounded, but never up to a mark it misses: 94.96% does not read as 95%, nor 99.97% as all."""
    if ratio is None:
        return "-"
    rounded = round(ratio, 2 + digits)
    if any(ratio < mark <= rounded for mark in (WELL_SERVED_RATIO, 1.0)):
        rounded -= 10 ** -(2 + digits)
    return f"{rounded:.{digits}%}"


def is_short(ratio: float | None) -> bool:
    """Whether less than 95% of what was owed was delivered."""
    return ratio is not None and ratio < WELL_SERVED_RATIO


def share(ratio: float) -> str:
    """A share or an entitlement for people: 35%, 12.5%, 0.25%."""
    return f"{ratio * 100:.2f}".rstrip("0").rstrip(".") + "%"


def path_words(path: str) -> str:
    """A node for people: its path without the root, which is the same for all."""
    return path.split("/", 1)[-1].replace("/", " / ")


def whole(amount: float | None) -> str:
    """GPUs or GPU-hours for people: whole, with thousands separators; less than ten keep a digit."""
    if amount is None:
        return "-"
    return f"{amount:,.1f}" if 0 < abs(amount) < TEN else f"{amount:,.0f}"


def names_axis() -> alt.Axis:
    """The axis of a list of names: names in ink, nothing else."""
    return alt.Axis(domain=False, ticks=False, grid=False, labelColor=INK, labelPadding=8)


def _program(path: str) -> str:
    return path.split("/")[1]


def _config() -> dict[str, Any]:
    return {
        "background": "white",
        "font": FONT,
        "padding": 4,
        "view": {"stroke": None, "continuousWidth": WIDTH, "continuousHeight": HEIGHT},
        "axis": {
            "domainColor": FAINT,
            "gridColor": FAINT,
            "tickColor": FAINT,
            "labelColor": MUTED,
            "labelFontSize": 12,
            "titleColor": MUTED,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
            "titlePadding": 10,
            "labelLimit": 220,
        },
        "legend": {
            "orient": "top",
            "direction": "horizontal",
            "title": None,
            "labelColor": INK,
            "labelFontSize": 12,
            "labelLimit": 320,
            "symbolType": "square",
            "columnPadding": 18,
            "offset": 8,
        },
        "header": {"labelColor": INK, "labelFontSize": 12, "labelFontWeight": 600, "title": None},
        "text": {"color": INK, "fontSize": 12},
        "title": {"color": INK, "fontSize": 14, "fontWeight": 600, "anchor": "start", "subtitleColor": MUTED},
    }
