import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
from skins.three_weeks import make_store

from gpupolicy import __version__, assets
from gpupolicy.errors import InvalidInput, ReportFailed
from gpupolicy.reports import Report, run_report

NOTEBOOKS = sorted(assets.NOTEBOOKS.glob("*.ipynb"))
REVIEW = assets.NOTEBOOKS / "01_usage_review.ipynb"
MEBIBYTE = 1024 * 1024


def code_cells(path: Path) -> list[nbformat.NotebookNode]:
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_a_thin_skin(path: Path) -> None:
    code = code_cells(path)

    assert re.match(r"\d\d_\w+$", path.stem), "numbered as the quarter runs"
    assert nbformat.read(path, as_version=4).cells[0].source.startswith("# "), "opens with a title"
    assert sum("parameters" in cell.metadata.get("tags", []) for cell in code) == 1
    assert not any(cell.outputs or cell.execution_count for cell in code), "committed without outputs"
    assert not any(re.search(r"^\s*(def|class|for|while) ", cell.source, re.MULTILINE) for cell in code)
    assert max(len(cell.source.splitlines()) for cell in code) <= 12


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_picture_of_a_notebook_follows_prose(path: Path) -> None:
    cells = nbformat.read(path, as_version=4).cells
    shown = [place for place, cell in enumerate(cells) if cell.source.startswith("charts.")]

    assert shown
    assert all(cells[place - 1].cell_type == "markdown" or place - 1 in shown for place in shown)


@dataclass(frozen=True)
class Made:
    report: Report
    told: list[str]
    page: str


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A report on two of the three weeks of one program, run once for all that is asked of it."""
    folder = tmp_path_factory.mktemp("report")
    store, policy = make_store(folder)
    told: list[str] = []
    parameters = {"store": store, "policy": policy, "node": "vision", "cluster": None, "ends_at": "2026-03-15"}
    report = run_report(REVIEW, parameters, out_dir=folder / "out", progress=told.append)
    page = re.sub(r"<script>.*?</script>", "", report.html.read_text(encoding="utf-8"), flags=re.DOTALL)
    return Made(report, told, page)


@pytest.mark.slow
def test_a_report_is_one_dated_file_beside_the_notebook_it_was_made_of(made: Made) -> None:
    assert sorted(path.name for path in made.report.html.parent.iterdir()) == [
        "2026Q1-usage-review-2026-03-15.html",
        "2026Q1-usage-review-2026-03-15.ipynb",
    ]
    assert made.report.html.stat().st_size <= 3 * MEBIBYTE
    nbformat.validate(nbformat.read(made.report.executed_notebook, as_version=4))
    assert (made.told[0], made.told[-1]) == ("In short", "writing the report")


@pytest.mark.slow
def test_a_report_refers_to_nothing_outside_itself(made: Made) -> None:
    assert not re.findall(r"""<\w[^>]*\s(?:src|href)\s*=\s*["']?(?!data:|#)[^"'\s>]+""", made.page)
    assert "@import" not in made.page
    assert "url(" not in made.page


@pytest.mark.slow
def test_a_report_answers_leadership(made: Made) -> None:
    assert "<title>Was the promised GPU time delivered?</title>" in made.page
    assert "2026Q1 · vision · 1 Mar 2026, 00:00 to 15 Mar 2026, 00:00 (UTC)" in made.page
    assert "<b>3 of 4</b>" in made.page
    assert '<tr class="gp-short"><td>vision / robotics</td>' in made.page
    assert made.page.count('class="gp-chart"') == 5
    assert "cycle.review" not in made.page, "code is hidden"


@pytest.mark.slow
def test_a_report_says_what_it_was_made_of(made: Made) -> None:
    assert f"<dd>gpupolicy {__version__}</dd>" in made.page
    assert "<dt>node</dt><dd>vision</dd>" in made.page
    assert len(re.findall(r"SHA-256 of (?:store|policy)</dt><dd><code>[0-9a-f]{64}</code>", made.page)) == 2


def test_a_misspelt_parameter_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as refused:
        run_report(REVIEW, {"store": "s", "nod": "vision"}, out_dir=tmp_path / "out")

    assert str(refused.value) == (
        "01_usage_review.ipynb has no parameter nod; it takes cluster, ends_at, node, policy, starts_at, store"
    )
    assert not (tmp_path / "out").exists()


def test_a_notebook_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"none\.ipynb: no such notebook"):
        run_report(tmp_path / "none.ipynb", {}, out_dir=tmp_path)


@pytest.mark.slow
def test_a_failing_cell_leaves_no_report_and_names_cell_reason_and_notebook(tmp_path: Path) -> None:
    broken = tmp_path / "07_broken.ipynb"
    shutil.copy(REVIEW, broken)

    with pytest.raises(ReportFailed) as failed:
        run_report(broken, {"store": tmp_path / "nowhere"}, out_dir=tmp_path / "out")

    assert str(failed.value).startswith(
        f"07_broken.ipynb stopped in cell 5 (review = cycle.review(): StoreMissing: no store at {tmp_path / 'nowhere'}"
    )
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["broken-failed.ipynb"]
    assert str(tmp_path / "out" / "broken-failed.ipynb") in str(failed.value)
