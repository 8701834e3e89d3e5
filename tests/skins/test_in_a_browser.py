from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from skins import browser
from skins.three_weeks import make_store

from gpupolicy import assets
from gpupolicy.reports import run_report

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(browser.CHROMIUM is None, reason="no chromium on this machine: install it to run these"),
]
CHART = ".vega-embed canvas, .vega-embed svg"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_store(tmp_path_factory.mktemp("browser"))


@pytest.fixture(scope="module")
def address(store: tuple[Path, Path]) -> Iterator[str]:
    with browser.served(*store) as told:
        yield told


def test_the_page_asks_nobody_but_its_server_and_has_no_complaint(address: str) -> None:
    with browser.watched_page() as watched:
        browser.open_dashboard(watched.page, address)

        assert watched.page.get_by_text("3 of 4", exact=True).is_visible()
        assert watched.page.get_by_text("teams got 95% or more of what they were owed").is_visible()

    assert watched.origins <= {urlsplit(address).netloc, "data", "blob"}
    assert watched.errors == []


def test_a_click_on_a_node_changes_the_chart_and_the_address(address: str) -> None:
    with browser.watched_page() as watched:
        browser.open_dashboard(watched.page, address)
        before = watched.page.locator(CHART).first.screenshot()

        watched.page.locator(".tabulator-row", has_text="robotics").click()
        watched.page.get_by_text("Delivered against owed: vision / robotics").wait_for()
        watched.page.wait_for_timeout(1000)  # for the chart to be drawn anew

        assert watched.page.locator(CHART).first.screenshot() != before
        assert "node=lab%2Fvision%2Frobotics" in watched.page.url

    assert watched.errors == []


def test_an_address_opens_the_same_look_again(address: str) -> None:
    asked = "budget_review?node=lab%2Fvision&from=2026-03-05&to=2026-03-08&cluster=b200"
    with browser.watched_page() as watched:
        browser.open_dashboard(watched.page, address + asked)

        assert watched.page.get_by_text("Delivered against owed: vision").is_visible()
        assert watched.page.get_by_role("combobox", name="Cluster").inner_text() == "b200"
        assert watched.page.get_by_label("Budget node").input_value() == "vision"


def test_an_unknown_node_in_the_address_is_told_kindly(address: str) -> None:
    with browser.watched_page() as watched:
        browser.open_dashboard(watched.page, address + "budget_review?node=lab%2Fnowhere")

        assert watched.page.get_by_text("no node 'lab/nowhere' in the budget tree").is_visible()
        assert watched.page.get_by_text("Delivered against owed: lab", exact=True).is_visible()


def test_an_address_that_is_no_date_is_told_kindly(address: str) -> None:
    with browser.watched_page() as watched:
        browser.open_dashboard(watched.page, address + "budget_review?from=yesterday")

        assert watched.page.get_by_text("The address of this page asks for from=yesterday").is_visible()


def test_names_in_policies_and_addresses_are_never_run_as_html(address: str) -> None:
    evil = "budget_review?node=%3Cimg%20src%3Dx%20onerror%3D%22document.title%3D2%22%3E"
    with browser.watched_page() as watched:
        browser.open_dashboard(watched.page, address + evil)
        watched.page.locator(".tabulator-row", has_text="onerror").click()
        watched.page.get_by_text("Delivered against owed: vision / <img").wait_for()

        assert watched.page.title() == "gpupolicy · budget review 2026Q1"
        assert watched.page.locator("img[src=x]").count() == 0


@pytest.mark.slow
def test_a_report_lives_without_a_network(store: tuple[Path, Path], tmp_path: Path) -> None:
    parameters = dict(zip(("store", "policy"), store, strict=True))
    report = run_report(assets.NOTEBOOKS / "01_usage_review.ipynb", parameters, out_dir=tmp_path)

    with browser.watched_page() as watched:
        watched.page.context.set_offline(True)
        watched.page.goto(report.html.as_uri())
        watched.page.locator(CHART).first.wait_for()

        assert watched.page.locator(CHART).count() == 5
        assert watched.page.locator(".gp-chart img").count() == 0, "every picture gave way to its live chart"
        assert watched.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")

    assert watched.origins <= {"file", "data"}
    assert watched.errors == []
