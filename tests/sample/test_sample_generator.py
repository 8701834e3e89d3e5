from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
from sample.log import host_names
from sample.making import SAMPLE, generate
from write import host_list


def test_the_same_seed_gives_the_same_bytes(four_days: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2")

    again = generate(tmp_path, seed=3, days=4)

    names = sorted(path.name for path in four_days.iterdir())
    assert names == [
        "hosts.csv",
        "outages.csv",
        "sacct-heron.psv.gz",
        "sacct-kestrel.psv.gz",
        "sacct-plover.psv.gz",
        "sacct-wren.psv.gz",
    ]
    assert [name for name in names if (again / name).read_bytes() != (four_days / name).read_bytes()] == []


def test_another_seed_gives_another_log(tmp_path: Path) -> None:
    one, other = generate(tmp_path / "5", seed=5, days=1), generate(tmp_path / "6", seed=6, days=1)

    assert (one / "sacct-wren.psv.gz").read_bytes() != (other / "sacct-wren.psv.gz").read_bytes()


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["wren004"], "wren004"),
        (["wren002", "wren001", "wren003", "wren009"], "wren[001-003,009]"),
        (["heron001", "heron003", "heron127", "heron128"], "heron[001,003,127-128]"),
    ],
)
def test_hosts_are_listed_in_slurms_short_form(names: list[str], text: str) -> None:
    assert host_list(names) == text
    assert host_names(text) == sorted(names)


@pytest.mark.slow
def test_the_committed_quarter_is_what_the_generator_makes(tmp_path: Path) -> None:
    made = generate(tmp_path, seed=7)

    for path in sorted(made.iterdir()):
        assert _content(path) == _content(SAMPLE / path.name), path.name


def _content(path: Path) -> bytes:
    """Unpacked: another build of zlib may pack the same text differently."""
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data
