"""Pieces of HTML that any page or notebook can hold, in the look of the charts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gpupolicy.charts import theme

# Goes along with every piece, since each may stand alone: in a dashboard it has a shadow tree of its own.
STYLE: Final = f"""<style>
.gp-figures {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(180px, 1fr)); gap: 12px 28px;
  font-family: {theme.FONT}; color: {theme.INK}; }}
.gp-figure b {{ display: block; font-size: 42px; line-height: 1.1; font-weight: 650; letter-spacing: -0.02em; }}
.gp-figure b.gp-short {{ color: {theme.SHORTFALL}; }}
.gp-figure span {{ display: block; font-size: 14px; line-height: 1.35; overflow-wrap: anywhere; }}
.gp-figure span + span {{ color: {theme.MUTED}; font-size: 13px; }}
.gp-table {{ border-collapse: collapse; font-family: {theme.FONT}; font-size: 14px; color: {theme.INK};
  font-variant-numeric: tabular-nums; }}
.gp-table th, .gp-table td {{ padding: 5px 14px; text-align: right; border-bottom: 1px solid {theme.FAINT}; }}
.gp-table th {{ color: {theme.MUTED}; font-weight: 500; font-size: 13px; vertical-align: bottom; }}
.gp-table th:first-child, .gp-table td:first-child {{ text-align: left; padding-left: 0; }}
.gp-table td.gp-words, .gp-table th.gp-words {{ text-align: left; }}
.gp-table tr.gp-short td {{ color: {theme.SHORTFALL}; font-weight: 600; }}
.gp-note {{ font-family: {theme.FONT}; color: {theme.INK}; font-size: 14px; }}
</style>"""


@dataclass(frozen=True)
class Html:
    """A piece of HTML that shows itself in a notebook; `text` is what other pages take."""

    text: str

    def _repr_html_(self) -> str:
        return self.text


def short_class(ratio: float | None) -> str:
    """The attribute that makes a ratio below the mark stand out, or nothing."""
    return ' class="gp-short"' if theme.is_short(ratio) else ""
