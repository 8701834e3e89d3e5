"""The field cases: what each expects, compared with what the package answers."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cases.answers import ANSWERS, NotAnswered

HERE = Path(__file__).parent
NOT_COMPARED = {"id", "area", "title", "params", "note"}
TOLERANCE = 1e-6


def case_folders() -> list[Path]:
    further = os.environ.get("GPUPOLICY_CASES")
    roots = [HERE, *([Path(further)] if further else [])]
    return [path.parent for root in roots for path in sorted(root.rglob("expected.json"))]


@pytest.mark.parametrize("folder", case_folders(), ids=lambda folder: f"{folder.parent.name}/{folder.name}")
def test_the_package_answers_what_the_case_expects(folder: Path, tmp_path: Path) -> None:
    expected = json.loads((folder / "expected.json").read_text())
    try:
        answered = ANSWERS[expected["area"]](folder, expected, tmp_path)
    except (KeyError, NotAnswered):
        if HERE in folder.parents:
            raise
        pytest.skip(f"{expected['id']}: not answered yet")

    wanted = {key: value for key, value in expected.items() if key not in NOT_COMPARED}
    assert list(differences(wanted, answered, expected["id"])) == []


def differences(wanted: Any, got: Any, where: str) -> Iterator[str]:  # noqa: ANN401 - JSON is anything
    """Every key that is missing or differs, by its path; keys beyond those wanted do not count."""
    if isinstance(wanted, dict):
        for key, value in wanted.items():
            if not isinstance(got, dict) or key not in got:
                yield f"{where}.{key}: no answer, expected {value!r}"
            else:
                yield from differences(value, got[key], f"{where}.{key}")
    elif isinstance(wanted, list) and isinstance(got, list | tuple) and len(wanted) == len(got):
        for index, (one, other) in enumerate(zip(wanted, got, strict=True)):
            yield from differences(one, other, f"{where}[{index}]")
    elif not alike(wanted, got):
        yield f"{where}: {got!r}, expected {wanted!r}"


def alike(wanted: Any, got: Any) -> bool:  # noqa: ANN401 - JSON is anything
    if wanted == "inf":
        return got == math.inf
    if isinstance(wanted, int | float) and not isinstance(wanted, bool):
        return isinstance(got, int | float) and math.isclose(wanted, got, rel_tol=0, abs_tol=TOLERANCE)
    return bool(wanted == got)


def test_the_comparison_tells_which_key_differs() -> None:
    wanted = {"a": {"x": 1.0, "y": [1, "inf"]}, "gone": None}

    told = list(differences(wanted, {"a": {"x": 1.1, "y": [1, 2], "more": 0}}, "FS-00"))

    assert told == [
        "FS-00.a.x: 1.1, expected 1.0",
        "FS-00.a.y[1]: 2, expected 'inf'",
        "FS-00.gone: no answer, expected None",
    ]
