"""The command line as a user meets it: words in, exit code and two streams out."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gpupolicy.cli import main

POLICY = """\
quarter: 2026Q1
tree:
  name: org
  owner: Grace
  children:
    - name: a
      share: 50%
      children: [{name: a1, share: 70%, owner: Ada}, {name: a2, share: 20%}]
    - {name: b, share: 40%}
"""
JOBS = """\
job_id,account,user,gpus,submit,eligible,start,end
1,a1,ada,8,2026-03-01T00:00:00Z,2026-03-01T00:00:00Z,2026-03-01T00:00:00Z,2026-03-01T06:00:00Z
2,a2,ben,2,2026-03-01T00:00:00Z,2026-03-01T00:00:00Z,2026-03-01T01:00:00Z,2026-03-01T03:00:00Z
3,b,cy,8,2026-03-01T02:00:00Z,2026-03-01T02:00:00Z,2026-03-01T06:00:00Z,2026-03-01T08:00:00Z
4,mystery,x,1,2026-03-01T00:00:00Z,2026-03-01T00:00:00Z,2026-03-01T00:00:00Z,2026-03-01T01:00:00Z
"""
CAPACITY = "gpus,valid_from,valid_to\n16,2026-01-01T00:00:00Z,\n"


@dataclass(frozen=True)
class Run:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:  # noqa: ANN401 - JSON is anything
        return json.loads(self.out)


@pytest.fixture
def gpupolicy(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Run]:
    """Run a command line in this process, with the arguments as the shell would give them."""

    def run(*arguments: object) -> Run:
        monkeypatch.setattr(sys, "argv", ["gpupolicy", *map(str, arguments)])
        capsys.readouterr()
        code: int | str | None = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code
        out, err = capsys.readouterr()
        return Run(int(code or 0), out, err)

    return run


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with a policy, a small usage log and a capacity."""
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "jobs.csv").write_text(JOBS)
    (tmp_path / "capacity.csv").write_text(CAPACITY)
    return tmp_path


@pytest.fixture
def store(files: Path, gpupolicy: Callable[..., Run]) -> Path:
    """A store with that log loaded, as cluster c."""
    store = files / "store"
    for verb in (("table", files / "jobs.csv"), ("capacity", files / "capacity.csv")):
        loaded = gpupolicy("ingest", *verb, "--cluster", "c", "--store", store, "--at", "2026-03-02")
        assert loaded.code == 0, loaded.err
    return store
