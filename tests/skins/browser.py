"""The system's Chromium, watched: what it asked for, and what it complained about."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Page, sync_playwright

CHROMIUM = shutil.which("chromium")
SERVE = """\
import sys
from pathlib import Path
from gpupolicy.serving import serve_dashboards
store, policy = map(Path, sys.argv[1:])
serve_dashboards(store=store, policy=policy, port=0, on_ready=lambda address: print(address, flush=True))
"""


@dataclass
class Watched:
    """A page, the origins it asked, and its errors."""

    page: Page
    origins: set[str] = field(default_factory=set)
    errors: list[str] = field(default_factory=list)


@contextmanager
def watched_page(*, width: int = 1440, height: int = 1100, scale: float = 1) -> Iterator[Watched]:
    # Chromium refuses its sandbox to root, as who containers often run.
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        page = browser.new_page(viewport={"width": width, "height": height}, device_scale_factor=scale)
        watched = Watched(page)
        page.on("request", lambda request: watched.origins.add(_origin(request.url)))
        page.on("websocket", lambda socket: watched.origins.add(_origin(socket.url)))
        page.on("console", lambda said: watched.errors.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: watched.errors.append(str(error)))
        yield watched
        browser.close()


def open_dashboard(page: Page, address: str) -> None:
    """Go there and wait until the page has drawn its charts."""
    page.goto(address)
    page.get_by_text("Delivered against owed").wait_for()
    page.locator(".vega-embed canvas, .vega-embed svg").first.wait_for()
    page.locator("#loader").wait_for(state="hidden")
    page.wait_for_timeout(1500)  # for the charts to take the width they have in the end


@contextmanager
def served(store: Path, policy: Path) -> Iterator[str]:
    """The dashboards in a process of their own; gives their address, ends them as Ctrl-C does."""
    command = [sys.executable, "-c", SERVE, str(store), str(policy)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        try:
            address = next((line for line in server.stdout if line.startswith("http")), None)
            assert address, "the server ended before it answered"
            yield address.strip()
        finally:
            server.send_signal(2)
            server.wait(timeout=20)
    assert server.returncode == 0, "Ctrl-C is a clean end"


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return parts.netloc or parts.scheme
