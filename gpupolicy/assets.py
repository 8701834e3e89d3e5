"""Where the files lie that travel with the package: notebooks, dashboards, sample data, mappings."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parent
_INSTALLED = _PACKAGE / "_assets"
_HOME = _INSTALLED if _INSTALLED.is_dir() else _PACKAGE.parent

NOTEBOOKS = _HOME / "notebooks"
DASHBOARDS = _HOME / "dashboards"
SAMPLE = _HOME / "data" / "sample"
POLICIES = _HOME / "data" / "policies"
MAPPINGS = _HOME / "data" / "mappings"
