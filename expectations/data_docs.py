"""Makes Data Docs readable without a network: what pages load from elsewhere goes out, a style sheet comes in."""

import re
from pathlib import Path

STYLE_SHEET = "static/styles/offline.css"

_REMOTE = re.compile(
    r"<script\b[^>]*\bsrc=[\"'](?:https?:)?//[^>]*>\s*</script>"
    r"|<link\b[^>]*\bhref=[\"'](?:https?:)?//[^>]*>"
    r"|<img\b[^>]*\bsrc=[\"'](?:https?:)?//[^>]*>",
    re.IGNORECASE,
)


def without_remote_parts(data_docs: Path) -> None:
    """Rewrite every page below `data_docs` so that opening it loads nothing from elsewhere."""
    sheet = data_docs / STYLE_SHEET
    sheet.parent.mkdir(parents=True, exist_ok=True)
    sheet.write_text((Path(__file__).parent / "offline.css").read_text(encoding="utf-8"), encoding="utf-8")
    for page in sorted(data_docs.rglob("*.html")):
        up = "../" * (len(page.relative_to(data_docs).parts) - 1)
        link = f'<link rel="stylesheet" href="{up}{STYLE_SHEET}">'
        text = _REMOTE.sub("", page.read_text(encoding="utf-8"))
        page.write_text(text.replace("</head>", f"{link}</head>", 1), encoding="utf-8")
