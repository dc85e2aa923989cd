"""Helpers that know nothing about tokenizers."""
