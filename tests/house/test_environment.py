"""environment.yml says in conda's names what pyproject.toml says in pip's."""

import re
import tomllib
from pathlib import Path

import yaml

# conda-forge's name -> PyPI's, where they differ
PYPI_NAMES = {"python-duckdb": "duckdb", "playwright-python": "playwright"}


def bounds(requirement: str) -> tuple[str, frozenset[str]]:
    match = re.fullmatch(r"([A-Za-z0-9_.-]+)\s*(.*)", requirement)
    assert match is not None, requirement
    name = match[1].lower().replace("_", "-")
    return PYPI_NAMES.get(name, name), frozenset(part.strip() for part in match[2].split(",") if part.strip())


def test_conda_and_pip_install_the_same_within_the_same_bounds(repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    environment = yaml.safe_load((repository / "environment.yml").read_text())
    named = [one for one in environment["dependencies"] if isinstance(one, str)]
    (by_pip,) = (one["pip"] for one in environment["dependencies"] if isinstance(one, dict))
    conda = dict(bounds(one) for one in named + [one for one in by_pip if not one.startswith("--")])

    pip = dict(bounds(one) for one in project["dependencies"] + project["optional-dependencies"]["dev"])

    assert environment["channels"] == ["conda-forge"]
    assert conda.pop("python") == bounds("python " + project["requires-python"])[1]
    assert conda.pop("pip") == frozenset()
    assert conda == pip


def test_constraints_pin_every_dependency_and_name_no_host(repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    lines = [line for line in (repository / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    pinned = {line.split("==")[0].lower().replace("_", "-") for line in lines}
    wanted = {bounds(one)[0] for one in project["dependencies"] + project["optional-dependencies"]["dev"]}

    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9.+!]+", line) for line in lines)
    assert wanted <= pinned
