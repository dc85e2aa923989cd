"""Settings of Sphinx for the documentation site: `make site`."""

import builtins
import re
import sys
from pathlib import Path
from textwrap import indent

from docutils.nodes import document
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx

import batchbpe

sys.path.insert(0, str(Path(__file__).parent))
from pages import address_of

project = "batchbpe"
copyright = "the contributors of batchbpe, MIT license"
version = release = batchbpe.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "sphinx_copybutton"]
default_role = "code"
smartquotes = False
highlight_language = "none"

myst_enable_extensions = ["attrs_inline"]
myst_heading_anchors = 4
nb_execution_mode = "off"
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

autodoc_member_order = "bysource"
autodoc_mock_imports = ["pyspark", "tokenizers", "transformers"]
python_maximum_signature_line_length = 80
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"
INTERNAL = (
    "_core",
    "analysis.counted_text",
    "counts.counter",
    "data",
    "errors.Setting",
    "experiments.data.DividedDocuments",
    "phrases.counting",
    "tokenizer.paper.Self",
    "transformers.BatchBPETokenizer",
)
"""What appears in signatures and has no entry in the API reference. Names of other packages are not checked."""
nitpick_ignore_regex = [("py:.*", rf"(?!batchbpe\.).*|batchbpe\.({'|'.join(INTERNAL)})\b.*")]

pygments_style = "friendly"
pygments_dark_style = "github-dark"

html_theme = "furo"
html_title = "batchbpe"
html_baseurl = address_of("Documentation")
html_static_path = ["static"]
html_css_files = ["style.css"]
html_copy_source = False
html_search_scorer = str(Path(__file__).parent / "scorer.js")
html_theme_options = {
    "source_repository": address_of("Repository"),
    "top_of_page_buttons": [],
    "footer_icons": [],
}


def docstring(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Turn a docstring, which is written for `help()`, into reStructuredText."""
    text, heading, parameters = "\n".join(lines).partition("Parameters\n----------\n")
    if heading:
        parameters, *rest = re.split(r"\n(?=\n|>>>|(?!\w+(?:, \w+)*: )\S)", parameters, maxsplit=1)
        parameters = re.sub(r"(?m)^(\w+(?:, \w+)*): ", r"* **\1** – ", parameters)
        parameters = re.sub(r"(?m)^ +", "  ", parameters)
        text = "\n\n".join([text, ":Parameters:", indent(parameters, "    "), *rest])
    text = re.sub(rf"{html_baseurl}([\w-]+)\.html(#[\w-]+)?", r":doc:`/\1`", text)
    parts = re.split(r"(?m)(^ *>>>.*(?:\n.*\S.*)*|:Parameters:|:doc:`[^`]+`|\* \*\*.*?\*\*|`[^`]+`)", text)
    parts[::2] = [re.sub(r"([*|\\]|_\b(?!\w))", r"\\\1", part) for part in parts[::2]]
    parts[1::2] = [f"`{part}`" if part[0] == "`" else part for part in parts[1::2]]
    lines[:] = "".join(parts).splitlines()


def builtin_types(app: Sphinx, doctree: document) -> None:
    """Qualify built-in types, so that they do not lead to attributes of the same name, such as `bytes`."""
    for link in doctree.findall(pending_xref):
        if link.get("refdomain") == "py" and link["reftarget"] in vars(builtins):
            link["reftarget"] = f"builtins.{link['reftarget']}"


def setup(app: Sphinx) -> None:
    """Connect the functions."""
    app.connect("autodoc-process-docstring", docstring)
    app.connect("doctree-read", builtin_types)
