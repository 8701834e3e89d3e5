"""Dashboards served from this process: on loopback unless told otherwise, and nothing leaves the host."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from panel.io.server import get_server
from tornado.ioloop import IOLoop

from gpupolicy import assets
from gpupolicy.errors import EnvironmentTrouble

PORTS_TRIED = 20
ANY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 - compared with, never listened on by default


def serve_dashboards(
    *,
    store: Path,
    policy: Path | None,
    port: int = 5006,
    address: str = "127.0.0.1",
    show: bool = False,
    on_ready: Callable[[str], None] | None = None,
    origins: Sequence[str] = (),
) -> None:
    """Serve every page of dashboards/ until Ctrl-C; `on_ready` hears the address once it answers.

    A taken port gives way to the next free one; port 0 takes any. `origins` are further HOST[:PORT] by which
    browsers reach the pages, such as that of a proxy. Raises EnvironmentTrouble if no port is free.
    """
    _tell_pages(store, policy)
    free = _free_port(address, port)
    server = get_server(
        _pages(),
        port=free,
        address=address,
        websocket_origin=_origins(address, free, origins),
        show=False,
        start=False,
        warm=True,  # imports and the first review now, not while the first reader waits
    )
    server.start()
    if on_ready:
        on_ready(_url(address, free))
    if show:
        server.show("/")
    try:
        IOLoop.current().start()
    except KeyboardInterrupt:
        pass  # the asked-for end
    finally:
        server.stop()


def _tell_pages(store: Path, policy: Path | None) -> None:
    """Pages are scripts of their own; what they look at reaches them through the environment."""
    os.environ["GPUPOLICY_STORE"] = str(store.resolve())
    if policy is None:
        os.environ.pop("GPUPOLICY_POLICY", None)
    else:
        os.environ["GPUPOLICY_POLICY"] = str(policy.resolve())


def _pages() -> dict[str, Any]:
    return {f"/{path.stem}": path for path in sorted(assets.DASHBOARDS.glob("*.py"))}


def _free_port(address: str, port: int) -> int:
    last: OSError | None = None
    for tried in range(port, port + PORTS_TRIED) if port else (0,):
        try:
            with socket.create_server((address, tried)) as probe:
                return int(probe.getsockname()[1])
        except OSError as error:
            last = error
    raise EnvironmentTrouble(
        f"cannot listen on {address}, ports {port} to {port + PORTS_TRIED - 1}: {last}; choose another with --port"
    )


def _origins(address: str, port: int, more: Sequence[str]) -> list[str]:
    host = socket.gethostname() if address in ANY_ADDRESS else address
    names = dict.fromkeys([host, "localhost", "127.0.0.1"])
    return [*(f"{name}:{port}" for name in names), *more]


def _url(address: str, port: int) -> str:
    host = socket.gethostname() if address in ANY_ADDRESS else address
    return f"http://{host}:{port}/"
