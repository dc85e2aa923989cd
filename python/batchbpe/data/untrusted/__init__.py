"""The fence around tables that may be damaged or hostile. Everything that pyarrow reads for us goes through here.

pyarrow trusts its input: it decompresses whatever a few bytes claim to be, and follows offsets without checking them.
A small file could take all memory or crash the process. `open_table` and `arrow_strings` guarantee:

- **Memory.** Reading one batch takes a small multiple of `max_document_bytes`, or a few hundred megabytes if that is
  more, whatever the file claims. The sizes are in metadata that pyarrow does not expose, so `parquet_pages` and
  `arrow_ipc` read it.
- **Errors.** Whatever is wrong with the file is a `DataError`. Only errors from the operating system remain `OSError`.
- **Strings.** The arrays in a batch are not validated. Pass them to `arrow_strings`, which checks offsets, views and
  indices before anything follows them, and yields plain strings in batches of a few megabytes.

Not guaranteed: page headers of remote parquet files would be fetched one by one, so their metadata is trusted.
"""

from .parquet_pages import has_dictionary
from .tables import BoundedTable, damaged, open_table

__all__ = ["BoundedTable", "damaged", "has_dictionary", "open_table"]
