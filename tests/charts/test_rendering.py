import json
import re

import altair as alt
import nbformat
import polars as pl
import pytest

from gpupolicy import charts
from gpupolicy.charts import theme
from gpupolicy.charts.rendering import for_lab, for_report
from gpupolicy.charts.theme import Picture

EVIL = "</script><script>alert(1)</script>"


def picture(name: str = "a") -> Picture:
    frame = pl.DataFrame({"name": [name], "gpus": [3]})
    bars = alt.Chart(frame, height=60).mark_bar().encode(x=alt.X("gpus", title="GPUs"), y="name")
    return theme.look(bars, "One bar.")


@pytest.mark.parametrize("drawn", [picture(), theme.empty("Nothing to show.")])
def test_charts_become_pictures_without_a_browser(drawn: Picture) -> None:
    assert charts.png(drawn.to_dict()).startswith(b"\x89PNG")
    assert charts.svg(drawn.to_dict()).startswith("<svg")


def test_a_picture_has_its_words() -> None:
    assert ">GPUs</text>" in charts.svg(picture().to_dict())
    assert ">Nothing to show.</text>" in charts.svg(theme.empty("Nothing to show.").to_dict())


def test_a_notebook_accepts_what_a_chart_shows_in_it() -> None:
    output = nbformat.v4.new_output("display_data", data=for_lab(picture().to_dict()))
    cell = nbformat.v4.new_code_cell("chart", outputs=[output])

    nbformat.validate(nbformat.v4.new_notebook(cells=[cell]))

    assert set(output.data) == {"application/vnd.vegalite.v5+json", "image/png"}


def test_a_name_cannot_end_the_script_of_a_report() -> None:
    html = for_report(picture(EVIL).to_dict())["text/html"]

    assert html.count("</script>") == 1
    spec = re.search(r'vegaEmbed\("#chart-\w+", (.*), \{renderer', html)
    assert spec
    assert EVIL in json.dumps(json.loads(spec[1]), ensure_ascii=False)


def test_a_report_shows_a_picture_until_its_script_has_drawn_the_chart() -> None:
    html = for_report(picture().to_dict())["text/html"]

    assert '<img alt="One bar." src="data:image/png;base64,' in html
    assert '"width": "container"' in html


def test_charts_show_themselves_where_they_were_told_to() -> None:
    shown = {}
    with alt.renderers.enable():  # puts the renderer back afterwards
        for place in ("lab", "report"):
            charts.show_in(place)
            shown[place] = sorted(picture()._repr_mimebundle_())

    assert shown == {
        "lab": ["application/vnd.vegalite.v5+json", "image/png"],
        "report": ["image/png", "text/html"],
    }


def test_the_bundle_of_a_report_draws_charts_and_is_small_enough() -> None:
    bundle = charts.vega_bundle()

    assert "window.vegaEmbed=" in bundle
    assert "</script" not in bundle
    assert len(bundle) < 1_000_000
