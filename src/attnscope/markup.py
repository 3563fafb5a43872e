"""Markup is written by templates; whatever is put into one is escaped unless it is markup itself.

Templates are the files below ``templates``. The only ways to markup are a template
(:func:`fill`), JSON in which no tag can begin (:func:`inert`), and scripts and style sheets that
come with a package (:func:`trusted`). Text of data, settings and names goes through none of the
last two, so it cannot be forgotten to escape it. A name that a template asks for and was not given
is an error, not a gap in the page.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


def fill(template: str, **values: Any) -> Markup:
    """Return a template with its blanks filled in.

    Args:
        template: the file below ``templates``, without its ending.
        values: what it speaks of.

    >>> fill("notebook/progress", share=0.5, said="<b>")[-24:]
    Markup('<small>&lt;b&gt;</small>')
    """
    from markupsafe import Markup

    return Markup(_environment().get_template(f"{template}.html.j2").render(values))


def inert(text: str) -> Markup:
    r"""Return JSON in which no tag can begin or end, as it may stand inside a script.

    >>> print(inert('["</script>"]'))
    ["\u003c/script\u003e"]
    """
    from markupsafe import Markup

    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def trusted(text: str) -> Markup:
    """Return a script or a style sheet that comes with a package, as it is. Never give it data."""
    from markupsafe import Markup

    return Markup(text)


@cache
def _environment() -> Environment:
    """Return where templates are found; Jinja2 is imported when the first page is written."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader(__package__, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
