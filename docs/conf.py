"""Settings of the documentation site (Sphinx): `make docs` builds it into docs/_build/html."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import deciban

HERE = Path(__file__).parent
ROOT = HERE.parent

project = "deciban"
author = "the deciban authors"
copyright = "the deciban authors"
version = release = deciban.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "README.md", "images/*.py", "gallery"]
templates_path = ["_templates"]
toc_object_entries_show_parents = "hide"
suppress_warnings = ["config.cache"]  # the settings of the gallery hold a function

# -- pages in Markdown -------------------------------------------------------------------------------------------------
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

# -- reference ---------------------------------------------------------------------------------------------------------
autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # numpydoc's sections name the types
numpydoc_show_class_members = False  # the template lists them
numpydoc_class_members_toctree = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# -- gallery -----------------------------------------------------------------------------------------------------------
sphinx_gallery_conf: dict[str, Any] = {
    "examples_dirs": [str(HERE / "gallery")],
    "gallery_dirs": ["gallery_pages"],
    "filename_pattern": r"plot_",
    "remove_config_comments": True,
    "download_all_examples": False,
    "capture_repr": (),  # what a script prints is shown, not the object of its last line
    "within_subsection_order": "FileNameSortKey",
    "show_memory": False,
    "min_reported_time": 1e9,
    "copyfile_regex": r"",
}

# -- appearance --------------------------------------------------------------------------------------------------------
html_theme = "pydata_sphinx_theme"
html_title = "deciban"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    "show_prev_next": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "navbar_end": ["theme-switcher"],
}
html_sidebars = {"index": []}

FROM_THE_ROOT = {"contributing": "CONTRIBUTING.md", "changes": "CHANGELOG.md", "security": "SECURITY.md"}
SOURCES = re.compile(r"\[([^\]]*)\]\((?:\.\./)*(?:src|tests|tools|benchmarks|examples)/[^)]*\)")
ROOT_PAGES = re.compile(r"\]\((?:\.\./)+(CONTRIBUTING|SECURITY)\.md")


def _read(app: Any, name: str, source: list[str]) -> None:
    """Read pages that lie in the root of the repository; show links to source files as file names."""
    if name in FROM_THE_ROOT:
        source[0] = (ROOT / FROM_THE_ROOT[name]).read_text().replace("](docs/", "](")
    depth = "../" * name.count("/")
    text = ROOT_PAGES.sub(lambda found: f"]({depth}{found[1].lower()}.md", source[0])
    source[0] = SOURCES.sub(r"\1", text).replace("```mermaid", "```text")


def _inherited(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Show cross-references in docstrings that scikit-learn's mixins bring along as plain text."""
    if (getattr(obj, "__module__", "") or "").startswith("sklearn."):
        plain = [re.sub(r":(?:ref|term|class|meth|func):`~?([^`<]*?)(?: <[^`]*>)?`", r"\1", line) for line in lines]
        lines[:] = [re.sub(r"(?<![`\w])(\w+_)(?![`\w])", r"``\1``", line) for line in plain]


def setup(app: Any) -> None:
    """Register the changes of sources and docstrings."""
    app.connect("autodoc-process-docstring", _inherited)
    app.connect("source-read", _read)
