"""Addresses of the documentation, for help texts and errors. Docstrings contain them in full."""

DOCUMENTATION = "https://batchbpe.github.io/batchbpe/"


def page(name: str) -> str:
    """Return the address of a page.

    >>> page("phrases")
    'https://batchbpe.github.io/batchbpe/phrases.html'
    """
    return f"{DOCUMENTATION}{name}.html"
