"""Settings of Sphinx for the documentation site: `make site`."""

import ast
import builtins
import inspect
import re
import sys
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from textwrap import indent

from docutils.nodes import document
from sphinx.addnodes import desc_annotation, pending_xref
from sphinx.application import Sphinx

import batchbpe

sys.path.insert(0, str(Path(__file__).parent))
from pages import address_of

project = "batchbpe"
copyright = "the contributors of batchbpe, MIT license"
version = release = batchbpe.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.linkcode", "sphinx_copybutton"]
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
    "analysis.vocab_atlas.facts",
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


class Shorter(ast.NodeTransformer):
    """Replace long default values by `...`, and `InitVar[type]` by the type."""

    def visit_arguments(self, node: ast.arguments) -> ast.AST:
        """Replace the default values."""
        for defaults in (node.defaults, node.kw_defaults):
            defaults[:] = [ast.Constant(...) if each and len(ast.unparse(each)) > 60 else each for each in defaults]
        return self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Replace `InitVar`."""
        node = self.generic_visit(node)
        return node.slice if ast.unparse(node.value).endswith("InitVar") else node


def signature(
    app: Sphinx, what: str, name: str, obj: object, options: object, arguments: str | None, returns: str | None
) -> tuple[str, str | None] | None:
    """Replace default values that are not valid Python: Sphinx cannot divide or link a signature with them."""
    if not arguments:
        return None
    valid = re.sub(r"<factory>|<function [\w.<>]+>|<object[\w ]+>", "...", arguments)
    valid = re.sub(r"<class '([\w.]+)'>", r"\1", valid)
    try:
        function = Shorter().visit(ast.parse(f"def f{valid}: pass").body[0])
    except SyntaxError:  # the first line of a built-in docstring, such as `D.get(k[, d])`
        return None
    return f"({ast.unparse(function.args)})", returns


def entries(app: Sphinx, doctree: document) -> None:
    """Qualify built-in types, so that they do not lead to attributes of the same name, and omit long values."""
    for annotation in list(doctree.findall(desc_annotation)):
        text = annotation.astext()
        if "InitVar" in text or (len(text) > 100 and text.lstrip().startswith("=")):
            annotation.parent.remove(annotation)
    for link in doctree.findall(pending_xref):
        if link.get("refdomain") == "py" and link["reftarget"] in vars(builtins):
            link["reftarget"] = f"builtins.{link['reftarget']}"


def linkcode_resolve(domain: str, info: dict[str, str]) -> str | None:
    """Return the address of the source of an entry, if it is in the package and written in Python."""
    try:
        found = attrgetter(info["fullname"])(import_module(info["module"]))
        found = inspect.unwrap(found.fget if isinstance(found, property) else found)
        file = Path(inspect.getsourcefile(found)).relative_to(Path(batchbpe.__file__).parent)
        lines, first = inspect.getsourcelines(found)
    except (AttributeError, ImportError, OSError, TypeError, ValueError):
        return None
    place = f"python/batchbpe/{file.as_posix()}#L{first}-L{first + len(lines) - 1}"
    return f"{address_of('Repository')}/blob/main/{place}"


def setup(app: Sphinx) -> None:
    """Connect the functions."""
    app.connect("autodoc-process-docstring", docstring)
    app.connect("autodoc-process-signature", signature)
    app.connect("doctree-read", entries)
