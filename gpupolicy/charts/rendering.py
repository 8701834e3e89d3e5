"""How a chart becomes output of a notebook cell: without a network, in JupyterLab and in a report.

Altair's own renderers cannot serve here. One marks its output with a type that nbformat refuses and
JupyterLab 4 does not know; the other takes its JavaScript from a CDN.
"""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape
from typing import Any, Final, Literal

import altair as alt
import vl_convert

Place = Literal["lab", "report"]
VEGA_LITE: Final = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
PNG_SCALE: Final = 1.5


def show_in(place: Place) -> None:
    """From here on charts show themselves for JupyterLab, or for a report that holds `vega_bundle` once."""
    alt.renderers.enable(f"gpupolicy-{place}")


def vega_bundle() -> str:
    """The JavaScript that draws charts in a report: Vega, Vega-Lite and vegaEmbed, about 0.9 MB."""
    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed=vegaEmbed;", vl_version=VEGA_LITE)
    return bundle


def png(spec: dict[str, Any]) -> bytes:
    picture: bytes = vl_convert.vegalite_to_png(spec, vl_version=VEGA_LITE, scale=PNG_SCALE)
    return picture


def svg(spec: dict[str, Any]) -> str:
    picture: str = vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE)
    return picture


def for_lab(spec: dict[str, Any], **_: object) -> dict[str, Any]:
    """A live chart under the type that JupyterLab 4 knows, and a picture for all others."""
    return {"application/vnd.vegalite.v5+json": spec, "image/png": _as_base64(png(spec))}


def for_report(spec: dict[str, Any], **_: object) -> dict[str, Any]:
    """A picture that the report's own vegaEmbed replaces with the live chart once the page is open."""
    picture = _as_base64(png(spec))
    text = json.dumps(_as_wide_as_the_page(spec), sort_keys=True, ensure_ascii=False)
    place = f"chart-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    words = escape(spec.get("description", "chart"), quote=True)
    # Names are user data: `</script>` in one would end the script.
    live = text.replace("<", "\\u003c")
    html = (
        f'<div id="{place}" class="gp-chart"><img alt="{words}" src="data:image/png;base64,{picture}"></div>'
        f'<script>window.vegaEmbed && vegaEmbed("#{place}", {live}, '
        '{renderer: "svg", actions: false});</script>'
    )
    return {"text/html": html, "image/png": picture}


def _as_wide_as_the_page(spec: dict[str, Any]) -> dict[str, Any]:
    # Vega-Lite knows the width of its container for single and layered charts only.
    if not {"layer", "mark"} & spec.keys():
        return spec
    return {**spec, "width": "container", "autosize": {"type": "fit-x", "contains": "padding"}}


def _as_base64(picture: bytes) -> str:
    return base64.b64encode(picture).decode("ascii")


alt.renderers.register("gpupolicy-lab", for_lab)
alt.renderers.register("gpupolicy-report", for_report)
