"""Sphinx configuration of the documentation."""

from __future__ import annotations

import os
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS / "_ext"), str(DOCS.parent)]
os.environ.setdefault("OMP_NUM_THREADS", "1")  # pages run side by side
os.environ["GRAPHBENCH_ROOT"] = str(DOCS / "_build" / "data")  # which all pages share

from executed_pages import cache_folder  # noqa: E402

from graphbench import __version__  # noqa: E402

project = "graphbench"
author = "The graphbench authors"
project_copyright = "The graphbench authors"
version = release = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "executed_pages",
    "dataset_pages",
    "dataset_costs",
    "beside_published",
    "published_tables",
    "command_line",
    "benchmark_tables",
    "leaderboard_page",
    "mathtext_formulas",
    "search_entries",
]
exclude_patterns = ["_build", "jupyter_execute", "examples", "**.ipynb_checkpoints"]

myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "cache"
nb_execution_cache_path = str(cache_folder(DOCS / "_build"))
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True

autosummary_generate = False
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
autodoc_default_options = {"exclude-members": "model_config, model_post_init"}
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
toc_object_entries_show_parents = "hide"

copybutton_exclude = ".linenos, .gp, .go"
copybutton_prompt_text = "$ "

html_math_renderer = "mathtext"
html_theme = "pydata_sphinx_theme"
html_title = "graphbench"
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_js_files = ["code_panel.js"]
html_show_sourcelink = False
html_sidebars = {"index": [], "search": [], "genindex": []}  # all others show the tree of their section
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"text": "graphbench"},
    "show_prev_next": True,
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "collapse_navigation": True,
    "navbar_persistent": ["search-button"],
    "navigation_with_keys": False,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "pygments_light_style": "a11y-high-contrast-light",
}
