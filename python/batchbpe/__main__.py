"""`python -m batchbpe` is the command `batchbpe`."""

from .cli import main

main()
