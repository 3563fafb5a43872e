"""A report as one HTML file that needs nothing but a browser.

The file opens from ``file://`` without a network: BokehJS, styles and data are inside it. Whatever
comes from data or settings is escaped, and a content security policy admits only the page's own
scripts, by their hashes, and no connection at all.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnscope.files import write_bytes
from attnscope.markup import fill, inert, trusted
from attnscope.needs import sentence, there
from attnscope.report.figure import Figure, Line, Rule
from attnscope.report.html_claims import claims, verdict
from attnscope.report.html_curves import curves
from attnscope.report.html_maps import attention_maps
from attnscope.report.html_overview import has_overview, overview_section
from attnscope.report.html_sections import diagnosis_section, told
from attnscope.report.html_surface import surfaces
from attnscope.report.page import Cell, Page, Table

if TYPE_CHECKING:
    from markupsafe import Markup


def write_report(path: Path, page: Page) -> Path:
    """Write the report of a run, all at once, and return its path.

    Links to images and CSV files are relative (``figures/<name>.png``, ``tables/<name>.csv``);
    :func:`attnscope.report.publish` puts the files there.
    """
    return write_bytes(Path(path), document(page).encode("utf-8", "replace"))


def document(page: Page) -> str:
    """Return the report of a run as the text of one HTML file."""
    figures = page.all_figures
    heavy = there("bokeh") and any(not _light(page, each) for each in figures)
    scripts = [_bokeh_script()] if heavy else []
    scripts.append(_resource("report.js"))
    if page.overview is not None or any(_light(page, each) for each in figures):
        scripts.append(_resource("curves.js"))
    if page.overview is not None:
        scripts.append(_resource("overview.js"))
    if any(figure.surfaces for figure in figures):
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
    filled = fill(
        "report/page",
        page=page,
        policy=policy,
        style=trusted(_resource("report.css")),
        verdict=verdict(page.findings),
        compact=page.overview is not None or bool(_headlines(page)),
        sections=sorted(written, key=lambda section: section[1] in late),
        scripts=[trusted(script) for script in scripts],
    )
    return str(filled)


def _told(page: Page) -> list[tuple[str, str, Markup | str]]:
    return [
        (part.title, part.name, told(part, _table, lambda figure: _figure(figure, page)))
        for part in page.sections
    ]


def _bokeh_script() -> str:
    from bokeh.resources import Resources

    return "\n".join(Resources(mode="inline", components=["bokeh"], log_level="warn").js_raw)


def _light(page: Page, figure: Figure) -> bool:
    """Whether a figure is drawn by the page's own script: nothing but curves, below an overview.

    Without Bokeh all curves are, wherever they stand.
    """
    marks = [mark for panel in figure.panels for mark in panel.marks]
    plain = not figure.surfaces and all(isinstance(mark, Line | Rule) for mark in marks)
    return plain and bool(figure.panels) and (page.overview is not None or not there("bokeh"))


def _claims(page: Page) -> Markup | str:
    return claims(page.findings)


def _maps(page: Page) -> Markup | str:
    """Fold all layers but the one that a diagnosis speaks of, or the first."""
    names = [maps.name for maps in page.maps]
    spoken_of = [f"layer-{diagnosis.layer}" for diagnosis in page.diagnoses]
    first = next((name for name in spoken_of if name in names), names[0] if names else "")
    return _listed(attention_maps(maps, folded=maps.name != first) for maps in page.maps)


def _listed(parts: Iterable[Markup]) -> Markup | str:
    return fill("report/listed", parts=parts).strip()


def _headlines(page: Page) -> Sequence[Figure]:
    """Return the figure of the first screen, unless an overview or a told part is there."""
    return () if page.overview is not None or page.sections else page.figures[:1]


def _headline(page: Page) -> Markup | str:
    return _listed(_figure(figure, page, light=_light(page, figure)) for figure in _headlines(page))


def _figures(page: Page) -> Markup | str:
    rest = page.figures[len(_headlines(page)) :]
    return _listed(_figure(figure, page, light=_light(page, figure)) for figure in rest)


def _figure(figure: Figure, page: Page, light: bool = False) -> Markup:
    """Return a figure; a light one is folded, and drawn by a small script."""
    drawn = not light and bool(figure.panels or not figure.surfaces)
    return fill(
        "report/figure",
        figure=figure,
        images=page.images,
        shown=next((ending for ending in ("png", "svg") if ending in page.images), ""),
        curves=curves(figure) if light else "",
        surfaces=surfaces(figure) if figure.surfaces else "",
        plot=_plot_data(figure) if drawn and there("bokeh") else "",
        missing=sentence("bokeh") if drawn and not there("bokeh") else "",
    )


def _plot_data(figure: Figure) -> Markup:
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


def _tables(page: Page) -> Markup | str:
    return _listed(_table(table) for table in page.tables)


def _table(table: Table) -> Markup:
    numeric = [
        bool(table.rows) and all(_is_number(row[index]) for row in table.rows)
        for index in range(len(table.columns))
    ]
    rows = [[_cell(cell) for cell in row] for row in table.rows]
    return fill("report/table", table=table, numeric=numeric, rows=rows)


def _reproduce(page: Page) -> Markup | str:
    if not (page.command or page.python or page.spec or page.provenance):
        return ""
    return fill(
        "report/again",
        page=page,
        settings=json.dumps(page.spec, indent=2, ensure_ascii=False),
        provenance={str(name): _json_text(value) for name, value in page.provenance.items()},
    )


def _diagnosis(page: Page) -> Markup | str:
    """Return the section, unless the overview has it."""
    return "" if has_overview(page) else diagnosis_section(page)


_SECTIONS: tuple[tuple[str, str, Callable[[Page], Markup | str]], ...] = (
    ("Overview", "overview", overview_section),
    ("Headline figure", "headline", _headline),
    ("Diagnosis", "diagnosis", _diagnosis),
    ("Claims", "claims", _claims),
    ("Attention maps", "maps", _maps),
    ("Figures", "figures", _figures),
    ("Tables", "tables", _tables),
    ("Make it again", "again", _reproduce),
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
