"""Small tables of facts as HTML, for notebooks."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def format_html_table(
    title: str, rows: Sequence[tuple[str, object]], escape: Callable[[str], str] | None = None
) -> str:
    """Return a small HTML table of facts for notebooks; None values are left out."""
    import html

    quote = escape or html.escape
    body = "".join(
        f"<tr><th style='text-align:left'>{quote(name)}</th><td>{quote(str(value))}</td></tr>"
        for name, value in rows
        if value is not None
    )
    return f"<table><caption>{quote(title)}</caption>{body}</table>"
