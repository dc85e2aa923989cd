"""Data: anything a user has, as one stream of documents."""
