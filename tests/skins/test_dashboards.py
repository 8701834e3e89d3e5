import importlib.util
import sys
from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest
import vl_convert
from panel.models.tabulator import CellClickEvent
from panel_material_ui import Alert, AutocompleteInput, Select
from param import Parameterized
from skins.three_weeks import make_store

from gpupolicy import assets, charts, cycle

# Panel 1.9 itself calls pandas 3.1 in a way that pandas will drop.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")


@pytest.fixture(scope="module")
def page() -> ModuleType:
    """The page as a module: nothing is served, so importing it only defines."""
    spec = importlib.util.spec_from_file_location("budget_review", assets.DASHBOARDS / "budget_review.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where Panel looks for what it caches
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def review_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., cycle.Review]:
    store, policy = make_store(tmp_path_factory.mktemp("dashboard"))
    return partial(cycle.review, store, policy)


@pytest.fixture
def state(page: ModuleType, review_of: Callable[..., cycle.Review]) -> Parameterized:
    return page.State(review_of)


def test_the_page_opens_on_the_root_and_all_that_was_observed(state: Parameterized) -> None:
    assert (state.node, state.cluster, state.trouble) == ("lab", "all clusters", "")
    assert (state.starts_on, state.ends_on) == (date(2026, 3, 1), date(2026, 3, 22))
    assert state.clusters == ["all clusters", "b200", "h100"]


def test_choosing_a_node_changes_headlines_chart_and_table(page: ModuleType, state: Parameterized) -> None:
    figures, chart, table = page.headlines(state), page.delivery(state), page.budgets(state)
    before = chart.object.to_dict()["datasets"]

    state.node = "lab/vision/robotics"

    assert '<b class="gp-short">72%</b><span>of owed GPU time delivered</span>' in figures.object
    assert chart.object.to_dict()["datasets"] != before
    assert table.value["path"][table.selection[0]] == "lab/vision/robotics"


def test_a_shorter_span_is_shown_by_the_hour(page: ModuleType, state: Parameterized) -> None:
    chart = page.delivery(state)

    state.param.update(starts_on=date(2026, 3, 2), ends_on=date(2026, 3, 4))

    y = chart.object.to_dict()["layer"][0]["encoding"]["y"]
    assert y["title"] == "GPUs (mean over the hour)"
    assert state.review.hourly.height == 48


def test_choosing_a_cluster_narrows_the_pyramid_to_it(page: ModuleType, state: Parameterized) -> None:
    pyramid = page.pyramid(state)

    state.cluster = "b200"

    (cells,) = pyramid.object.to_dict()["datasets"].values()
    assert {cell["cluster"] for cell in cells} == {"b200"}


def test_what_cannot_be_shown_says_why_and_keeps_the_last_good_look(page: ModuleType, state: Parameterized) -> None:
    alert, figures = page.trouble(state), page.headlines(state)
    before = figures.object

    state.node = "lab/nowhere"

    assert alert.visible
    assert "no node &#x27;lab/nowhere&#x27; in the budget tree" in alert[0].object
    assert figures.object == before
    state.node = "lab/vision"
    assert not alert.visible


def test_the_choosers_follow_what_is_shown(page: ModuleType, state: Parameterized) -> None:
    choosers = page.choosers(state)
    (node,), (cluster,) = list(choosers.select(AutocompleteInput)), list(choosers.select(Select))

    state.node = "lab/vision"
    cluster.value = "h100"

    state.starts_on = date(2027, 1, 1)

    assert state.trouble
    assert node.value == "lab/vision"
    assert node.options["language / evaluation"] == "lab/language/evaluation"
    assert state.review.pyramid["cluster"].to_list() == ["h100", "all clusters"]


def test_a_click_on_a_row_of_the_tree_chooses_its_node(page: ModuleType, state: Parameterized) -> None:
    table = page.budgets(state)

    table._process_event(CellClickEvent(None, column="node", row=2))

    assert state.node == "lab/language/pretraining"


def test_an_address_that_cannot_be_followed_is_told(state: Parameterized) -> None:
    state.refuse({"starts_on": "yesterday"})

    assert state.trouble == "The address of this page asks for from=yesterday, which cannot be shown."


def test_without_a_store_the_page_says_which_command_makes_one(page: ModuleType, tmp_path: Path) -> None:
    view = page.app(partial(cycle.review, tmp_path / "none"))

    (alert,) = list(view.select(Alert))
    assert alert.title == "There is nothing to show yet"
    assert "<code>gpupolicy ingest</code>" in alert[0].object


def test_the_whole_page_builds(page: ModuleType, review_of: Callable[..., cycle.Review]) -> None:
    view = page.app(review_of)

    assert view.title == "gpupolicy · budget review 2026Q1"
    assert len(list(view.select(Alert))) == 1


def test_a_review_is_computed_once_until_the_store_changes(page: ModuleType, tmp_path: Path) -> None:
    store, policy = make_store(tmp_path)
    ask = page.review_of_store(str(store), str(policy))

    first, again = ask(node="vision"), ask(node="vision")
    (store / "published.duckdb").touch()
    later = ask(node="vision")

    assert first is again
    assert later is not first


def test_jupyterlabs_older_vega_lite_draws_every_chart_alike(page: ModuleType, state: Parameterized) -> None:
    views = [page.delivery, page.teams, page.pyramid, page.queue]
    specs = [view(state).object.to_dict() for view in views]
    specs.append(charts.budget_tree(state.review.nodes).to_dict())

    for spec in specs:
        fixed = {**spec, "width": 600} if spec.get("width") == "container" else spec
        assert vl_convert.vegalite_to_svg(fixed, vl_version="5.8") == charts.svg(fixed)
