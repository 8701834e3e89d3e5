"""Files and functions stay of a size that a reader takes in at once."""

import ast
from pathlib import Path

import pytest

from gpupolicy import errors

REPOSITORY = Path(__file__).resolve().parents[2]
FILES = sorted(
    path for folder in ("gpupolicy", "dashboards", "data/sample") for path in (REPOSITORY / folder).rglob("*.py")
)

LONGEST_FILE = 400
LONGEST_FUNCTION = 60
USUAL_FUNCTION = 35  # nine of ten are within


def function_lengths(path: Path) -> list[tuple[str, int]]:
    nodes = ast.walk(ast.parse(path.read_text()))
    return [
        (
            f"{path.relative_to(REPOSITORY)}:{node.lineno} {node.name}",
            (node.end_lineno or 0) - node.lineno + 1,
        )
        for node in nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def test_no_file_and_no_function_outgrows_its_reader() -> None:
    long_files = [str(path) for path in FILES if path.read_text().count("\n") > LONGEST_FILE]
    lengths = [one for path in FILES for one in function_lengths(path)]

    assert long_files == []
    assert [name for name, length in lengths if length > LONGEST_FUNCTION] == []
    assert sum(length > USUAL_FUNCTION for _, length in lengths) <= len(lengths) / 10


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_every_module_says_its_subject_in_a_sentence(path: Path) -> None:
    if path.read_text().strip():
        docstring = ast.get_docstring(ast.parse(path.read_text()))

        assert docstring is not None
        assert docstring.split("\n\n")[0].rstrip().endswith((".", ":", "?"))


def test_nobody_catches_everything() -> None:
    broad = [
        f"{path}:{node.lineno}"
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ExceptHandler) and (node.type is None or getattr(node.type, "id", "") == "Exception")
    ]

    assert broad == []


def test_the_tree_of_errors_is_drawn_as_it_is() -> None:
    drawn = errors.__doc__ or ""
    defined = [name for name, one in vars(errors).items() if isinstance(one, type) and issubclass(one, Exception)]

    assert [name for name in defined if name not in drawn] == []
