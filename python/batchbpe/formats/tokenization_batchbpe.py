"""The class that `AutoTokenizer` loads from a folder whose model tokenizer.json cannot represent.

`Tokenizer.export(folder, "transformers")` copies this file into the folder if it is needed. Using it requires
`pip install batchbpe`.
"""

from batchbpe.transformers import BatchBPETokenizer

__all__ = ["BatchBPETokenizer"]
