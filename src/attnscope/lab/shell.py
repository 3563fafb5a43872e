"""The frame that every page of the lab stands in: header, navigation, theme, skip link.

Styles and scripts are files of the lab's own server, so that the content security policy needs to
admit nothing inline and no other host. Whatever is given as text is escaped here; ``body`` is
markup, and whoever makes it has escaped what came from data.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

NAVIGATION = (
    ("play", "/", "Play"),
    ("runs", "/runs", "Runs"),
    ("claims", "/claims", "Claims"),
)


def page(
    title: str,
    body: str,
    current: str = "",
    *,
    scripts: Sequence[str] = (),
    styles: Sequence[str] = (),
) -> str:
    """Return a whole page.

    Args:
        title: of the window, as text.
        body: markup of what stands below the header.
        current: which entry of the navigation this is: ``play``, ``runs`` or ``claims``.
        scripts: files below ``/static``, run in this order after the page is there.
            ``plots.js`` brings BokehJS with it.
        styles: further style sheets below ``/static``.
    """
    links = "".join(
        f'<li><a href="{address}"{" aria-current=page" if key == current else ""}>{name}</a></li>'
        for key, address, name in NAVIGATION
    )
    sheets = "\n".join(
        f'<link rel="stylesheet" href="/static/{escape(name)}">' for name in ("shell.css", *styles)
    )
    bokeh = ["/static/bokeh.min.js"] if "plots.js" in scripts else []
    sources = [*bokeh, *(f"/static/{name}" for name in scripts)]
    tags = "\n".join(f'<script defer src="{escape(source)}"></script>' for source in sources)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{escape(title)} · attnscope lab</title>
<script src="/static/theme.js"></script>
{sheets}
{tags}
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header class="bar">
<a class="brand" href="/">attnscope <span>lab</span></a>
<nav aria-label="Pages"><ul>{links}</ul></nav>
<button type="button" id="theme" class="plain" aria-label="Theme">Theme</button>
</header>
<main id="content" tabindex="-1">
{body}
</main>
</body>
</html>
"""


def sentence(title: str, text: str, current: str = "", hint: str = "") -> str:
    """Return a page that says one sentence, as for an error that a person can mend."""
    more = f'<p class="soft">{hint}</p>' if hint else ""
    return page(
        title,
        f'<div class="card say" role="alert"><h1>{escape(title)}</h1>'
        f"<p>{escape(text)}</p>{more}</div>",
        current,
    )
