"""Kubernetes: workloads of Kueue, pods and nodes, samples of Prometheus, allocations of OpenCost."""

from gpupolicy.ingest.kubernetes.kueue import read_kueue
from gpupolicy.ingest.kubernetes.opencost import read_opencost
from gpupolicy.ingest.kubernetes.pods import read_pods
from gpupolicy.ingest.kubernetes.prometheus import GPU_UTILIZATION, GPUS_HELD, read_prometheus
from gpupolicy.ingest.kubernetes.prometheus_api import RangeReply, fetch_range, save_reply

__all__ = [
    "GPUS_HELD",
    "GPU_UTILIZATION",
    "RangeReply",
    "fetch_range",
    "read_kueue",
    "read_opencost",
    "read_pods",
    "read_prometheus",
    "save_reply",
]
