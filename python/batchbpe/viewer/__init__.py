"""`batchbpe view`: a local page to look at tokens and vocabularies.

`workspace` contains what was loaded, `api` answers the requests of the page, `server` serves both, `work` bounds the
work of all requests, and `static_page` writes a page that needs no server. The page itself is in the folder static:
plain ES modules without a build step.
"""
