"""Range queries to a live Prometheus, page by page, and their replies saved to be read and loaded."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from gpupolicy.domain import Span
from gpupolicy.errors import EnvironmentTrouble, InvalidInput, UnreadableLog

TOKEN_VARIABLE = "GPUPOLICY_PROMETHEUS_TOKEN"  # noqa: S105 - a variable's name
POINTS_PER_PAGE = 2_000  # of each series; Prometheus refuses more than 11,000
HOUR_S = 3600

_SECRET_SCHEMES = ("Bearer ", "Basic ")


@dataclass(frozen=True, slots=True)
class RangeReply:
    """What a range query found: series of labels and samples, over the hours of a span in steps."""

    query: str
    span: Span
    step_s: int
    series: tuple[Mapping[str, Any], ...]
    warnings: tuple[str, ...] = ()


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect leads to a log-in page, and would take the token along."""

    def redirect_request(self, *_: object) -> None:
        return None


def fetch_range(
    url: str,
    query: str,
    *,
    start: datetime,
    end: datetime,
    step_s: int = 300,
    token_file: Path | None = None,
    timeout_s: float = 60,
    points_per_page: int = POINTS_PER_PAGE,
) -> RangeReply:
    """Ask /api/v1/query_range for samples in [start, end), full hours; the end itself belongs to the next window.

    `step_s` divides the hour, so that windows which overlap ask for the same moments. A token is read from
    `token_file` or the variable GPUPOLICY_PROMETHEUS_TOKEN; one that begins with "Basic " or "Bearer " is sent as
    it is. Raises EnvironmentTrouble if nobody answers in time, UnreadableLog for any answer that is no success.
    """
    span = Span(_in_utc(start), _in_utc(end))
    if step_s < 1 or HOUR_S % step_s:
        raise InvalidInput(f"a step of {step_s} s does not divide the hour; take 15, 30, 60, 300 or 900")
    _check_address(url)
    headers = _headers(token_file)
    series: dict[tuple[tuple[str, str], ...], dict[str, Any]] = {}
    warnings: list[str] = []
    for first, last in _pages(span, step_s, points_per_page):
        question = {"query": query, "start": first.timestamp(), "end": last.timestamp(), "step": step_s}
        answer = _answer(url, question, headers=headers, timeout_s=timeout_s)
        warnings += [*map(str, answer.get("warnings") or ())]
        for found in answer["data"]["result"]:
            held = series.setdefault(tuple(sorted(found["metric"].items())), {"metric": found["metric"], "values": []})
            held["values"] += found["values"]
    return RangeReply(query, span, step_s, tuple(series.values()), tuple(dict.fromkeys(warnings)))


def save_reply(reply: RangeReply, path: Path) -> None:
    """Write a reply as Prometheus would have given it in one, with the query, the window and the step beside it."""
    text = json.dumps(
        {
            "status": "success",
            "query": reply.query,
            "start": reply.span.starts_at.isoformat(),
            "end": reply.span.ends_at.isoformat(),
            "step_s": reply.step_s,
            "warnings": list(reply.warnings),
            "data": {"resultType": "matrix", "result": list(reply.series)},
        }
    ).encode()
    written = path.with_name(path.name + ".part")
    written.write_bytes(gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)
    written.replace(path)


def _in_utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _pages(span: Span, step_s: int, points: int) -> Iterator[tuple[datetime, datetime]]:
    """First and last moment of each page; both ends of a range query count."""
    step = timedelta(seconds=step_s)
    first = span.starts_at
    while first < span.ends_at:
        last = min(first + (points - 1) * step, span.ends_at - step)
        yield first, last
        first = last + step


def _check_address(url: str) -> None:
    """Raises InvalidInput; it never shows an address that may hold a secret."""
    parts = urllib.parse.urlsplit(url)
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise InvalidInput(
            f"the address of Prometheus holds more than host and path; put a secret into {TOKEN_VARIABLE} or a file"
        )
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise InvalidInput(f"'{url}' is no address of Prometheus; write it like http://prometheus.example:9090")


def _headers(token_file: Path | None) -> dict[str, str]:
    try:
        secret = token_file.read_text(encoding="utf-8") if token_file else os.environ.get(TOKEN_VARIABLE, "")
    except (OSError, UnicodeDecodeError) as trouble:
        raise InvalidInput(f"{token_file}: the token cannot be read: {type(trouble).__name__}") from None
    secret = secret.strip()
    if not secret.isascii() or any(not character.isprintable() for character in secret):
        raise InvalidInput("the token for Prometheus holds characters that no header may have; it is not shown")
    if not secret:
        return {}
    return {"Authorization": secret if secret.startswith(_SECRET_SCHEMES) else f"Bearer {secret}"}


def _answer(
    url: str, question: Mapping[str, object], *, headers: Mapping[str, str], timeout_s: float
) -> dict[str, Any]:
    address = f"{url.rstrip('/')}/api/v1/query_range?{urllib.parse.urlencode(question)}"
    request = urllib.request.Request(address, headers=dict(headers))  # noqa: S310 - http or https, checked above
    opener = urllib.request.build_opener(_NoRedirect)
    try:
        with opener.open(request, timeout=timeout_s) as reply:
            status, body = reply.status, reply.read()
    except urllib.error.HTTPError as refused:
        with refused:
            status, body = refused.code, refused.read()
    except (TimeoutError, urllib.error.URLError, http.client.HTTPException, ssl.SSLError, ConnectionError) as trouble:
        raise _unreachable(url, trouble, timeout_s) from None
    answer, fault = _judged(status, body)
    if fault is not None:
        raise UnreadableLog(f"{url}: {_without_secret(fault, headers)}")
    return answer


def _unreachable(url: str, trouble: Exception, timeout_s: float) -> EnvironmentTrouble:
    reason = trouble.reason if isinstance(trouble, urllib.error.URLError) else trouble
    if isinstance(reason, TimeoutError):
        return EnvironmentTrouble(f"{url}: no answer within {timeout_s:g} s; ask for less at once, or wait longer")
    return EnvironmentTrouble(f"{url}: cannot be reached: {reason or type(reason).__name__}")


def _judged(status: int, body: bytes) -> tuple[dict[str, Any], str | None]:
    """The answer, and what is the matter with it."""
    try:
        answer = json.loads(body)
    except (json.JSONDecodeError, UnicodeDecodeError):
        return {}, f"{_refused(status)}, and not with JSON; is this the address of Prometheus itself?"
    if not isinstance(answer, dict) or answer.get("status") not in {"success", "error"}:
        return {}, f"{_refused(status)} that Prometheus does not give; is this the address of Prometheus itself?"
    if answer["status"] == "error":
        return {}, f"{_refused(status)}: {answer.get('errorType')}: {answer.get('error')}"
    if (answer.get("data") or {}).get("resultType") != "matrix":
        return {}, f"{_refused(status)} and no matrix; the query has to give a value a moment, not a range or a text"
    return answer, None


def _without_secret(text: str, headers: Mapping[str, str]) -> str:
    """A server may repeat what it was sent."""
    for secret in headers.values():
        text = text.replace(secret, "(secret)").replace(secret.partition(" ")[2], "(secret)")
    return text


def _refused(status: int) -> str:
    meant = {401: " (a token is needed, or it is wrong)", 403: " (the token may not ask this)"}
    if 300 <= status < 400:  # noqa: PLR2004 - redirects
        return f"it answered with a redirect ({status}), as a log-in page does"
    return f"it answered with {status}{meant.get(status, '')}"
