"""Phrases: tokens for sequences of chunks, such as " of the", trained in a second phase.

See https://batchbpe.github.io/batchbpe/phrases.html.
"""
