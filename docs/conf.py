"""The site: `make docs` builds it without a network; search works in the browser, from files."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from attnscope import __version__

project = "attnscope"
author = "The attnscope developers"
copyright = author
release = version = __version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = f"attnscope {release}"
html_extra_path = ["_reports"] if Path(__file__).with_name("_reports").is_dir() else []
html_show_sphinx = False
exclude_patterns = ["_build", "_reports", "results"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
# Paths of the repository that are no pages of the site.
suppress_warnings = ["myst.xref_missing", "myst.header", "image.not_readable"]
nb_execution_mode = "off" if os.environ.get("ATTNSCOPE_DOCS") == "fast" else "force"
nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_execution_in_temp = True
autodoc_member_order = "bysource"
autodoc_typehints = "description"
html_theme_options = {"navigation_with_keys": True}

sys.path.insert(0, str(Path(__file__).parent))
from ledger import write_pages  # noqa: E402

write_pages(Path(__file__).with_name("ledger"))
