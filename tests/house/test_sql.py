"""The rules of the room of SQL that a machine can check."""

import re
from pathlib import Path

import duckdb
import pytest

SQL = sorted((Path(__file__).resolve().parents[2] / "gpupolicy" / "warehouse" / "sql").rglob("*.sql"))


@pytest.mark.parametrize("path", SQL, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_query_begins_with_its_grain_and_is_one_statement(path: Path) -> None:
    text = path.read_text()

    assert re.match(r"-- (Grain: one row|Takes out)", text), "say what one row is"
    assert len(duckdb.extract_statements(text)) == 1
    assert text == text.lower() or not re.search(r"\b(SELECT|FROM|WHERE|GROUP BY)\b", text), "lower case"


@pytest.mark.parametrize("path", SQL, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_no_query_holds_a_policy(path: Path) -> None:
    text = path.read_text()

    assert not re.search(r"interval\s+'?\d+'?\s+(day|week)", text), "a lookback is a parameter"
    assert "{" not in text, "values are bound, never formatted in"


def test_only_the_warehouse_says_sql(repository: Path) -> None:
    elsewhere = [
        path
        for folder in ("gpupolicy", "dashboards")
        for path in (repository / folder).rglob("*.py")
        if "warehouse" not in path.parts and re.search(r"\bselect\b.+\bfrom\b", path.read_text(), re.IGNORECASE)
    ]

    assert elsewhere == []
