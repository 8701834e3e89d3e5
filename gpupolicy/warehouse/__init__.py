"""The store of what happened: the only room that speaks to DuckDB, the only home of SQL."""

from gpupolicy.warehouse.load import Batch, Loaded, load
from gpupolicy.warehouse.measures import GPU_NS_PER_GPU_H, Capacity, Extent, Unmapped
from gpupolicy.warehouse.store import Reader, reading, writing

__all__ = [
    "GPU_NS_PER_GPU_H",
    "Batch",
    "Capacity",
    "Extent",
    "Loaded",
    "Reader",
    "Unmapped",
    "load",
    "reading",
    "writing",
]
