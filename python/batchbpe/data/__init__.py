"""Data: any input as one stream of documents."""
