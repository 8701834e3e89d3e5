"""Tables of any make, by a mapping file that says which column is what."""

from gpupolicy.ingest.table.mapping import TableMapping
from gpupolicy.ingest.table.mapping_files import load_mapping
from gpupolicy.ingest.table.reading import read_table

__all__ = ["TableMapping", "load_mapping", "read_table"]
