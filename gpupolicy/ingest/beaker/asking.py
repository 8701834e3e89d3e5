"""Ask a Beaker server over gRPC, by the messages of the package beaker-py, and save its replies as they came."""

from __future__ import annotations

import importlib
import json
import os
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from gpupolicy.errors import EnvironmentTrouble, InvalidInput
from gpupolicy.ingest.beaker.replies import TAKEN_AT

TIMEOUT_S = 60.0  # of one page
PAGE_SIZE = 50  # as the package itself asks
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")

_ADVICE = {
    "UNAUTHENTICATED": "is the token in BEAKER_TOKEN or in Beaker's configuration file still good?",
    "PERMISSION_DENIED": "the token's user may not see this; ask an administrator of the organization",
    "UNAVAILABLE": "is the address right, and may this machine reach it?",
    "NOT_FOUND": "is the cluster right? Give its id, or organization/name",
}


@dataclass(frozen=True, slots=True)
class _Package:
    """The modules of beaker-py and grpc: an optional extra, so they are looked for when they are needed."""

    messages: Any
    service: Any
    config: Any
    exceptions: Any
    grpc: Any
    json: Any
    timestamps: Any


@dataclass(frozen=True, slots=True)
class _Server:
    package: _Package
    stub: Any
    address: str
    token: str


def fetch_beaker(
    path: Path,
    *,
    cluster: str,
    starts_at: datetime,
    ends_at: datetime,
    asked_at: datetime,
    changed_since: datetime | None = None,
    bucket_hours: int = 1,
    address: str | None = None,
    is_insecure: bool = False,
) -> Path:
    """Save what Beaker says of a cluster: usage in the span, jobs that changed since, effective allocations.

    `cluster` is an id, or organization/name; jobs are those that ran on it or may, and changed since
    `changed_since`, the start of the span if it is None. The address is HOST:PORT, that of Beaker's configuration
    without one; the token comes from BEAKER_TOKEN or from that configuration. `is_insecure` does without TLS, on
    loopback alone. The file is written whole or not at all; read_beaker_jobs, read_beaker_usage and
    read_beaker_allocations read it. Moments without a zone are UTC. Raises EnvironmentTrouble if the server cannot
    be asked, InvalidInput for a span or an address that makes no sense.
    """
    if not starts_at < ends_at or bucket_hours < 1:
        raise InvalidInput("Beaker is asked for a span that ends after it starts, in buckets of an hour or more")
    package = _package()
    config = _config(package)
    server_address, token = address or config.rpc_address, config.user_token
    with _channel(package, server_address, is_insecure=is_insecure) as channel:
        server = _Server(package, package.service.BeakerStub(channel), server_address, token)
        cluster_id, organization_id = _cluster(server, cluster)
        since = changed_since or starts_at
        document = {
            TAKEN_AT: _utc(asked_at).isoformat(),
            "jobs": _jobs(server, cluster_id, organization_id, since),
            "cluster_usage_buckets": _usage(server, cluster_id, starts_at, ends_at, bucket_hours),
            "effective_allocations": _allocations(server, organization_id),
        }
    return _written(path, document)


def _package() -> _Package:
    names = (
        "beaker.beaker_pb2", "beaker.beaker_pb2_grpc", "beaker.config", "beaker.exceptions", "grpc",
        "google.protobuf.json_format", "google.protobuf.timestamp_pb2",
    )  # fmt: skip
    try:
        return _Package(*(importlib.import_module(name) for name in names))
    except ModuleNotFoundError as missing:
        raise EnvironmentTrouble(
            f"asking Beaker needs the package beaker-py ({missing.name} is not there): pip install 'gpupolicy[beaker]'"
        ) from None


def _config(package: _Package) -> Any:  # noqa: ANN401 - a class of the package
    """Its own configuration; what goes wrong with it is told without what stands in it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fields that a newer version of the package knows
            return package.config.Config.from_env()
    except (
        package.exceptions.BeakerConfigurationError,
        yaml.YAMLError,
        OSError,
        AttributeError,
        TypeError,
        ValueError,
    ):
        raise EnvironmentTrouble(
            "no usable token for Beaker: set the environment variable BEAKER_TOKEN, or mend Beaker's configuration file"
        ) from None


def _channel(package: _Package, address: str, *, is_insecure: bool) -> AbstractContextManager[Any]:
    if not is_insecure:
        channel = package.grpc.secure_channel(address, package.grpc.ssl_channel_credentials())
    elif address.rpartition(":")[0] in LOOPBACK:
        channel = package.grpc.insecure_channel(address)
    else:
        raise InvalidInput(f"Beaker at {address} is asked with TLS; only a server on loopback may do without")
    opened: AbstractContextManager[Any] = channel
    return opened


def _cluster(server: _Server, cluster: str) -> tuple[str, str]:
    """The ids of the cluster and of the organization that owns it."""
    messages, stub = server.package.messages, server.stub
    if "/" in cluster:
        owner, _, name = cluster.partition("/")
        request = messages.ResolveClusterNameRequest(owner_name=owner, cluster_name=name)
        cluster = _ask(server, stub.ResolveClusterName, request).cluster_id
    found = _ask(server, stub.GetCluster, messages.GetClusterRequest(cluster_id=cluster)).cluster
    return found.id, found.organization_id


def _jobs(server: _Server, cluster_id: str, organization_id: str, since: datetime) -> list[dict[str, Any]]:
    """Those that ran on the cluster, and those that wait and could; a job that is in both is one."""
    messages = server.package.messages
    common = {
        "organization_id": organization_id,
        "page_size": PAGE_SIZE,
        "status_changed_at_or_after": _stamp(server, since),
    }
    asked = ({"eligible_for_cluster_id": cluster_id, "scheduled": False}, {"scheduled_on_cluster_id": cluster_id})
    jobs: dict[str, dict[str, Any]] = {}
    for which in asked:
        request = messages.ListJobsRequest(options=messages.ListJobsRequest.Opts(**common, **which))
        for reply in _pages(server, server.stub.ListJobs, request):
            jobs |= {job.id: _as_dict(server, job) for job in reply.jobs}
    return list(jobs.values())


def _usage(
    server: _Server, cluster_id: str, starts_at: datetime, ends_at: datetime, bucket_hours: int
) -> list[dict[str, Any]]:
    messages = server.package.messages
    window = messages.Interval(start=_stamp(server, starts_at), finish=_stamp(server, ends_at))
    options = messages.ListClusterUsageRequest.Opts(
        cluster_id=cluster_id, window=window, page_size=PAGE_SIZE, bucket_hours=bucket_hours
    )
    pages = _pages(server, server.stub.ListClusterUsage, messages.ListClusterUsageRequest(options=options))
    return [_as_dict(server, bucket) for reply in pages for bucket in reply.buckets]


def _allocations(server: _Server, organization_id: str) -> list[dict[str, Any]]:
    messages = server.package.messages
    options = messages.ListEffectiveAllocationsRequest.Opts(org_id=organization_id, page_size=PAGE_SIZE)
    request = messages.ListEffectiveAllocationsRequest(options=options)
    pages = _pages(server, server.stub.ListEffectiveAllocations, request)
    return [_as_dict(server, one) for reply in pages for one in reply.effective_allocations]


def _pages(server: _Server, method: Any, request: Any) -> Iterator[Any]:  # noqa: ANN401 - of the package
    """The replies page by page; a later one is asked for by its token alone."""
    seen: set[str] = set()
    while True:
        reply = _ask(server, method, request)
        yield reply
        token = reply.next_page_token
        if not token:
            return
        if token in seen:
            raise EnvironmentTrouble(f"Beaker at {server.address} gives the same page again and again; ask later")
        seen.add(token)
        request = type(request)(next_page_token=token)


def _ask(server: _Server, method: Any, request: Any) -> Any:  # noqa: ANN401 - of the package
    try:
        return method(request, metadata=[("authorization", f"bearer {server.token}")], timeout=TIMEOUT_S)
    except server.package.grpc.RpcError as trouble:
        name = trouble.code().name
        said = str(trouble.details()).replace(server.token, "***")
        advice = f"; {_ADVICE[name]}" if name in _ADVICE else ""
        raise EnvironmentTrouble(f"Beaker at {server.address} answers {name}: {said}{advice}") from None


def _as_dict(server: _Server, message: Any) -> dict[str, Any]:  # noqa: ANN401 - of the package
    told: dict[str, Any] = server.package.json.MessageToDict(message, preserving_proto_field_name=True)
    return told


def _stamp(server: _Server, moment: datetime) -> Any:  # noqa: ANN401 - of the package
    stamp = server.package.timestamps.Timestamp()
    stamp.FromDatetime(_utc(moment))
    return stamp


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _written(path: Path, document: dict[str, Any]) -> Path:
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.write_text(json.dumps(document, indent=1), encoding="utf-8")
    return aside.replace(path)
