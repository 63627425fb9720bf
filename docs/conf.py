import os
import sys
from pathlib import Path

import rejoint

sys.path[:0] = [str(Path(__file__).parent / "_ext"), str(Path(__file__).parents[1])]

project = "rejoint"
author = "rejoint contributors"
copyright = "rejoint contributors"
release = version = rejoint.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_click",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "figures",
    "mathml",
    "short_names",
]
html_math_renderer = "mathml"
exclude_patterns = ["_build", "_ext", "_templates", "extend/*.py"]
templates_path = ["_templates"]
nitpicky = True
nitpick_ignore = [
    ("py:attr", "basis"),  # attributes that the docstring of their own class names
    ("py:attr", "bounds"),
    ("py:attr", "pmf_"),
    ("py:func", "write_model"),
    ("py:class", "Recommendation"),
    ("py:class", "rejoint.factorization.loss.Loss"),
    ("py:mod", "rejoint.estimators.recommender.traits"),
]

autosummary_generate = True
# Some file systems cannot tell rejoint.Scan.html from rejoint.scan.html.
autosummary_filename_map = {"rejoint.Scan": "rejoint.Scan-class"}
autodoc_typehints = "none"  # numpydoc sections say it in words
numpydoc_show_class_members = False  # the template lists them, each with its own entry

os.environ.setdefault("MPLBACKEND", "Agg")
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": "plot_",
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,  # a page that would load scripts from elsewhere
    "remove_config_comments": True,
    "abort_on_example_error": True,
}

html_theme = "pydata_sphinx_theme"
html_title = "rejoint"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["pages.css"]
# Pages without pages below them have nothing to list at the left.
html_sidebars = {"index": [], "design": [], "search": [], "genindex": []}
html_theme_options = {
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 8,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}


def escape_stars(app, context, lines):
    """Show a pattern of files in the help of a command as it is, and not as emphasis."""
    lines[:] = [line.replace("*", r"\*") for line in lines]


def setup(app):
    app.connect("sphinx-click-process-description", escape_stars)
