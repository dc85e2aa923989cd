"""`Cancellation`: stop another thread within the core, where signals such as Ctrl-C do not reach it.

>>> from batchbpe import Model, Tokenizer
>>> tokenizer, cancellation = Tokenizer(Model(split="(?:(?!a*b)a)*c", merges={})), Cancellation()
>>> cancellation.cancel()  # usually called by another thread
>>> try:
...     with cancellation:
...         tokenizer.encode("a" * 50_000)
... except KeyboardInterrupt:
...     "cancelled"
'cancelled'
"""

from .._core import Cancellation as Cancellation
