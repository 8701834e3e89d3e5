"""What answers at an address is not always Prometheus: every fault is told, and no secret with it."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gpupolicy.errors import EnvironmentTrouble, InvalidInput, UnreadableLog
from gpupolicy.ingest import RangeReply, fetch_range

START = datetime(2026, 3, 1, tzinfo=UTC)
NOTHING = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": []}})


class Answers(BaseHTTPRequestHandler):
    """Answers by the first part of the path, and writes down who asked with what."""

    seen: list[str | None]

    def do_GET(self) -> None:
        self.seen.append(self.headers["Authorization"])
        kind = self.path.split("/")[1]
        if kind == "slow":
            time.sleep(1)
        status = {"moved": 302, "echo": 401}.get(kind, 200)
        self.send_response(status)
        if kind == "moved":
            self.send_header("Location", f"http://127.0.0.1:{self.server.server_port}/good/")
        self.end_headers()
        echo = json.dumps({"status": "error", "errorType": "auth", "error": f"no: {self.headers['Authorization']}"})
        with suppress(BrokenPipeError):  # who waited too long has left
            self.wfile.write({"good": NOTHING, "slow": NOTHING, "echo": echo}.get(kind, "<html>log in</html>").encode())

    def log_message(self, *_: object) -> None:
        """Nothing: a test's output is for its own words."""


@pytest.fixture(autouse=True)
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An address on loopback, reached without a proxy."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("GPUPOLICY_PROMETHEUS_TOKEN", raising=False)
    Answers.seen = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as one:
        thread = threading.Thread(target=one.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{one.server_port}"
        one.shutdown()
        thread.join()


def ask(url: str, *, timeout_s: float = 10, **options: object) -> RangeReply:
    return fetch_range(url, "up", start=START, end=START + timedelta(hours=1), timeout_s=timeout_s, **options)  # type: ignore[arg-type]


def test_the_token_comes_from_the_variable_or_from_a_file_and_is_sent_as_a_header(
    server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("of-the-file\n")
    ask(f"{server}/good")
    monkeypatch.setenv("GPUPOLICY_PROMETHEUS_TOKEN", "of-the-variable")
    ask(f"{server}/good/")
    ask(f"{server}/good/", token_file=tmp_path / "token")
    monkeypatch.setenv("GPUPOLICY_PROMETHEUS_TOKEN", "Basic dXNlcjpwYXNz")
    ask(f"{server}/good/")

    assert Answers.seen == [None, "Bearer of-the-variable", "Bearer of-the-file", "Basic dXNlcjpwYXNz"]


def test_a_redirect_is_not_followed_so_the_token_goes_nowhere_else(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUPOLICY_PROMETHEUS_TOKEN", "s3cret")

    with pytest.raises(UnreadableLog, match=r"answered with a redirect \(302\), as a log-in page does"):
        ask(f"{server}/moved")

    assert len(Answers.seen) == 1


def test_a_secret_is_in_no_message_even_if_the_server_repeats_it(
    server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GPUPOLICY_PROMETHEUS_TOKEN", "s3cret")
    with pytest.raises(UnreadableLog, match=r"401 \(a token is needed, or it is wrong\): auth: no: \(secret\)") as told:
        ask(f"{server}/echo")
    with pytest.raises(
        InvalidInput, match="holds more than host and path; put a secret into GPUPOLICY_PROM"
    ) as address:
        ask("http://ada:s3cret@prometheus.example")
    (tmp_path / "token").write_text("s3cret\nX-Other: 1")
    with pytest.raises(InvalidInput, match="characters that no header may have; it is not shown") as header:
        ask(f"{server}/good", token_file=tmp_path / "token")

    assert not any("s3cret" in str(one.value) for one in (told, address, header))


def test_a_page_instead_of_an_answer_is_said_to_be_none(server: str) -> None:
    with pytest.raises(UnreadableLog, match="answered with 200, and not with JSON; is this the address of Prometheus"):
        ask(f"{server}/page")


def test_nobody_is_waited_for_longer_than_was_said(server: str) -> None:
    with pytest.raises(EnvironmentTrouble, match=r"no answer within 0\.1 s; ask for less at once, or wait longer"):
        ask(f"{server}/slow", timeout_s=0.1)


def test_a_server_that_is_gone_is_named_with_the_reason() -> None:
    with socket.socket() as taken:  # bound, but nobody listens
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"

        with pytest.raises(EnvironmentTrouble, match=rf"{url}: cannot be reached: .*refused"):
            ask(url)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"step_s": 7}, "a step of 7 s does not divide the hour"),
        ({"start": START + timedelta(minutes=20)}, "a span begins and ends on the full hour"),
        ({"end": START}, "is empty"),
        ({"url": "file:///etc/passwd"}, "is no address of Prometheus"),
        ({"token_file": Path("/nowhere/token")}, "the token cannot be read: FileNotFoundError"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anybody_is(
    server: str, options: dict[str, object], message: str
) -> None:
    given: dict[str, object] = {
        "url": f"{server}/good",
        "query": "up",
        "start": START,
        "end": START + timedelta(hours=1),
    }

    with pytest.raises(InvalidInput, match=message):
        fetch_range(**(given | options))  # type: ignore[arg-type]

    assert Answers.seen == []
