"""Sphinx settings: MyST pages, the furo theme, warnings are errors (see the Makefile)."""

project = "rackrate"
author = "the rackrate contributors"
copyright = author
language = "en"

extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["decisions/template.md"]

html_theme = "furo"
html_title = "rackrate"
html_show_sphinx = False
