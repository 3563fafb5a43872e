"""A report as one HTML file that needs nothing but a browser.

The file opens from ``file://`` without a network: BokehJS, styles and data are inside it. Whatever
comes from data or settings is escaped, and a content security policy admits only the page's own
scripts, by their hashes, and no connection at all.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from attnscope.files import write_bytes
from attnscope.report.figure import Figure, Line, Rule
from attnscope.report.html_claims import claims, verdict
from attnscope.report.html_curves import curves
from attnscope.report.html_maps import attention_maps
from attnscope.report.html_overview import overview_section
from attnscope.report.html_sections import diagnosis_section, told
from attnscope.report.html_surface import inert, surfaces
from attnscope.report.page import Cell, Page, Table


def write_report(path: Path, page: Page) -> Path:
    """Write the report of a run, all at once, and return its path.

    Links to images and CSV files are relative (``figures/<name>.png``, ``tables/<name>.csv``);
    :func:`attnscope.report.publish` puts the files there.
    """
    return write_bytes(Path(path), document(page).encode())


def document(page: Page) -> str:
    """Return the report of a run as the text of one HTML file."""
    scripts = [_bokeh_script()] if any(not _light(page, each) for each in page.all_figures) else []
    scripts.append(_resource("report.js"))
    if page.overview is not None:
        scripts += [_resource("curves.js"), _resource("overview.js")]
    if any(figure.surfaces for figure in page.all_figures):
        scripts.append(_resource("surface.js"))
    if page.maps:
        scripts.append(_resource("maps.js"))
    policy = (
        f"default-src 'none'; script-src {' '.join(map(_source_hash, scripts))}; "
        "style-src 'unsafe-inline'; img-src 'self' file: data: blob:; base-uri 'none'; "
        "form-action 'none'"
    )
    written = [(name, anchor, body) for name, anchor, write in _SECTIONS if (body := write(page))]
    written = [*_told(page), *written]
    # Below an overview figures are folded, and come last.
    late = ("figures", "again") if page.overview is not None else ()
    sections = sorted(written, key=lambda section: section[1] in late)
    links = "".join(
        f'<li><a href="#{anchor}">{escape(name)}</a></li>' for name, anchor, _ in sections
    )
    bodies = "\n".join(
        f'<section aria-labelledby="{anchor}"><h2 id="{anchor}">{escape(name)}</h2>\n'
        f"{body}\n</section>"
        for name, anchor, body in sections
    )
    compact = page.overview is not None or _headlines(page)
    tags = "\n".join(f"<script>{script}</script>" for script in scripts)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{escape(page.title)}</title>
<style>
{_resource("report.css")}</style>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header{' class="compact"' * bool(compact)}>
<h1>{escape(page.title)}</h1>
<p>{escape(page.summary)}</p>
{verdict(page.findings)}
<p class="soft small">{escape(page.status)}</p>
<nav aria-label="Sections"><ul>{links}</ul></nav>
</header>
<main id="content">
{bodies}
</main>
<footer>Made with attnscope. This page is complete in itself and loads nothing.</footer>
{tags}
</body>
</html>
"""


def _told(page: Page) -> list[tuple[str, str, str]]:
    return [
        (part.title, part.name, told(part, _table, lambda figure: _figure(figure, page.images)))
        for part in page.sections
    ]


def _bokeh_script() -> str:
    from bokeh.resources import Resources

    return "\n".join(Resources(mode="inline", components=["bokeh"], log_level="warn").js_raw)


def _light(page: Page, figure: Figure) -> bool:
    """Whether a figure is drawn by the page's own script: nothing but curves, below an overview."""
    marks = [mark for panel in figure.panels for mark in panel.marks]
    plain = not figure.surfaces and all(isinstance(mark, Line | Rule) for mark in marks)
    return page.overview is not None and plain


def _claims(page: Page) -> str:
    return claims(page.findings)


def _maps(page: Page) -> str:
    """Fold all layers but the one that a diagnosis speaks of, or the first."""
    names = [maps.name for maps in page.maps]
    spoken_of = [f"layer-{diagnosis.layer}" for diagnosis in page.diagnoses]
    first = next((name for name in spoken_of if name in names), names[0] if names else "")
    return "\n".join(attention_maps(maps, folded=maps.name != first) for maps in page.maps)


def _headlines(page: Page) -> Sequence[Figure]:
    """Return the figure of the first screen, unless an overview or a told part is there."""
    return () if page.overview is not None or page.sections else page.figures[:1]


def _headline(page: Page) -> str:
    return "".join(_figure(figure, page.images) for figure in _headlines(page))


def _figures(page: Page) -> str:
    return "\n".join(
        _folded(figure, page.images) if _light(page, figure) else _figure(figure, page.images)
        for figure in page.figures[len(_headlines(page)) :]
    )


def _folded(figure: Figure, images: Sequence[str]) -> str:
    return f"""<details class="card" id="figure-{escape(figure.name)}">
<summary>{escape(figure.title)}</summary>
<figure>
<noscript>{_without_script(figure, images)}</noscript>
{curves(figure)}
<figcaption class="soft small">{escape(figure.caption)}</figcaption>
<div class="files small">{_files(figure, images)}</div>
</figure>
</details>"""


def _files(figure: Figure, images: Sequence[str]) -> str:
    return "".join(
        f'<a href="figures/{escape(figure.name)}.{ending}">{ending.upper()}</a>'
        for ending in (*images, "csv")
    )


def _figure(figure: Figure, images: Sequence[str]) -> str:
    name = escape(figure.name)
    image = f"<noscript>{_without_script(figure, images)}</noscript>"
    parts = [surfaces(figure)] if figure.surfaces else []
    if figure.panels or not figure.surfaces:
        parts.append(
            f'<div class="plot" id="plot-{name}">{image}</div>\n'
            f'<script type="application/json" data-plot="plot-{name}">{_plot_data(figure)}</script>'
        )
    else:
        parts.append(image)
    plot = "\n".join(parts)
    return f"""<figure class="card" id="figure-{name}">
<h3>{escape(figure.title)}</h3>
{plot}
<figcaption>{escape(figure.caption)}</figcaption>
<div class="files small">{_files(figure, images)}</div>
</figure>"""


def _without_script(figure: Figure, images: Sequence[str]) -> str:
    """Return what stands in the place of a figure where no script runs."""
    for ending in ("png", "svg"):
        if ending in images:
            return (
                f'<img src="figures/{escape(figure.name)}.{ending}" alt="{escape(figure.title)}">'
            )
    return (
        "<p>This figure is drawn by a script, which this browser does not run. Its numbers are in "
        "the CSV file below.</p>"
    )


def _plot_data(figure: Figure) -> str:
    """Return the Bokeh document as JSON in which no tag can begin or end.

    This is what ``bokeh.embed.json_item`` returns, without its two more walks over all models.
    """
    import bokeh
    from bokeh.core.json_encoder import serialize_json
    from bokeh.document import Document

    from attnscope.report.interactive import layout

    document, root = Document(), layout(figure)
    document.add_root(root)
    item = {"target_id": None, "root_id": root.id, "doc": document.to_json(deferred=False)}
    return inert(serialize_json({**item, "version": bokeh.__version__}))


def _tables(page: Page) -> str:
    return "\n".join(_table(table) for table in page.tables)


def _table(table: Table) -> str:
    numeric = [
        bool(table.rows) and all(_is_number(row[index]) for row in table.rows)
        for index in range(len(table.columns))
    ]
    mark = ["" if not right else ' class="number"' for right in numeric]
    head = "".join(
        f'<th scope="col"{kind}>{escape(name)}</th>'
        for name, kind in zip(table.columns, mark, strict=True)
    )
    body = "\n".join(
        "<tr>"
        + "".join(
            f"<td{kind}>{escape(_cell(cell))}</td>" for cell, kind in zip(row, mark, strict=True)
        )
        + "</tr>"
        for row in table.rows
    )
    name = escape(table.name)
    begin, end = '<div class="card"{}><h3>{}</h3>', "</div>"
    if table.folded:
        begin, end = '<details class="card"{}><summary>{}</summary>', "</details>"
    return f"""{begin.format(f' id="table-{name}"', escape(table.title))}
<div class="scroll" tabindex="0" role="region" aria-label="{escape(table.title)}"><table>
<thead><tr>{head}</tr></thead>
<tbody>{body}</tbody></table></div>
<div class="files small"><a href="tables/{name}.csv">CSV</a></div>
{end}"""


def _reproduce(page: Page) -> str:
    parts = []
    if page.command:
        parts.append(f"<h3>On the command line</h3>{_copyable('command', page.command)}")
    if page.python:
        parts.append(f"<h3>In Python</h3>{_copyable('python', page.python)}")
    if page.spec:
        text = escape(json.dumps(page.spec, indent=2, ensure_ascii=False))
        parts.append(
            f'<details><summary>Settings</summary><pre tabindex="0">{text}</pre></details>'
        )
    if page.provenance:
        rows = "".join(
            f"<dt>{escape(str(name))}</dt><dd>{escape(_json_text(value))}</dd>"
            for name, value in page.provenance.items()
        )
        parts.append(f"<details><summary>Provenance</summary><dl>{rows}</dl></details>")
    return f'<div class="card">{"".join(parts)}</div>' if parts else ""


def _diagnosis(page: Page) -> str:
    """Return the section, unless the overview has it."""
    return "" if overview_section(page) else diagnosis_section(page)


_SECTIONS: tuple[tuple[str, str, Callable[[Page], str]], ...] = (
    ("Overview", "overview", overview_section),
    ("Headline figure", "headline", _headline),
    ("Diagnosis", "diagnosis", _diagnosis),
    ("Claims", "claims", _claims),
    ("Attention maps", "maps", _maps),
    ("Figures", "figures", _figures),
    ("Tables", "tables", _tables),
    ("Make it again", "again", _reproduce),
)


def _copyable(anchor: str, text: str) -> str:
    return (
        f'<div class="copyable"><pre tabindex="0" id="text-{anchor}">{escape(text)}</pre>'
        f'<button type="button" data-copy="text-{anchor}" hidden>Copy</button></div>'
    )


def _is_number(cell: Cell) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def _cell(cell: Cell) -> str:
    if cell is None:
        return ""
    return f"{cell:.5g}" if isinstance(cell, float) else str(cell)


def _json_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _source_hash(script: str) -> str:
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _resource(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
