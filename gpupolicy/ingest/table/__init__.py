"""Tables of any make, by a mapping file that says which column is what."""

from gpupolicy.ingest.table.csv import read_table
from gpupolicy.ingest.table.mapping import TableMapping, load_mapping

__all__ = ["TableMapping", "load_mapping", "read_table"]
