"""`batchbpe view`: a local page to look at tokens and vocabularies.

`workspace` contains what was loaded, `api` answers the questions of the page, `server` serves both, `work` bounds what
requests do at once, and `static_page` writes a page that needs no server. The page itself is in the folder static:
plain ES modules, used as they are.
"""
