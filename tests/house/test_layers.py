"""The direction of imports, as import-linter sees it, and what its contracts cannot say."""

import ast
import re
import subprocess
import sys
from pathlib import Path


def test_imports_point_down_the_house(repository: Path) -> None:
    run = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, run.stdout
    assert "0 broken" in run.stdout


def test_the_clock_is_read_on_the_command_line_only(repository: Path) -> None:
    readers = [
        str(path.relative_to(repository))
        for path in (repository / "gpupolicy").rglob("*.py")
        if re.search(r"\b(datetime\.now|utcnow|date\.today|time\.time)\(", path.read_text())
    ]

    assert [path for path in readers if not path.startswith("gpupolicy/cli/")] == []


def test_dashboards_and_notebooks_use_public_names_only(repository: Path) -> None:
    private = [
        f"{path.name}:{node.lineno}"
        for path in (repository / "dashboards").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gpupolicy")
        for alias in node.names
        if alias.name.startswith("_")
    ]

    assert private == []


def test_the_command_line_starts_without_the_stacks_that_only_some_verbs_need() -> None:
    heavy = {"panel", "papermill", "nbconvert", "altair", "grpc"}
    script = "import sys, gpupolicy.cli; print(*sys.modules)"

    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert heavy & set(run.stdout.split()) == set()
