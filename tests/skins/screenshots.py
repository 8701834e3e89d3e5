"""The README's picture of the dashboard, made by the project itself.

From the checkout: .venv/bin/python tests/skins/screenshots.py data/demo/store data/policies/in_force/2026Q3.yaml
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from skins.browser import open_dashboard, served, watched_page

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "dashboard.png"


def take_screenshot(address: str, picture: Path, *, width: int = 1440, height: int = 1180) -> Path:
    """A picture of the page at `address` once its charts are drawn."""
    picture.parent.mkdir(parents=True, exist_ok=True)
    with watched_page(width=width, height=height) as watched:
        open_dashboard(watched.page, address)
        watched.page.screenshot(path=picture)
    return picture


if __name__ == "__main__":
    store, policy = map(Path, sys.argv[1:3])
    with served(store, policy) as address:
        print(take_screenshot(address, Path(sys.argv[3]) if len(sys.argv) > 3 else PICTURE))  # noqa: T201
