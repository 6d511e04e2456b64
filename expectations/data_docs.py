"""Makes Data Docs readable offline: removes what pages load from elsewhere, and adds a style sheet.

Great Expectations' pages take their scripts and styles from the network, and draw their index by script. Without the
scripts the pages of suites and results are complete; the index is rewritten.
"""

import re
import shutil
from collections.abc import Sequence
from html import escape
from pathlib import Path

from harness.store.result import SuiteResult

STYLE_SHEET = "static/styles/offline.css"

_REMOTE = re.compile(
    r"<script\b.*?</script>"
    r"|<link\b[^>]*\bhref=[\"'](?:https?:)?//[^>]*>"
    r"|<link\b[^>]*\bfavicon\.ico[\"'][^>]*>"
    r"|<img\b[^>]*\bsrc=[\"'](?:https?:)?//[^>]*>"
    r"|<footer\b.*?</footer>",
    re.IGNORECASE | re.DOTALL,
)

_INDEX = """\
<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Data Docs of {run}</title><link rel="stylesheet" href="{sheet}"></head>
<body>
<h1>Data Docs of {run}</h1>
<table class="table">
<thead><tr><th>Suite</th><th>Verdict</th><th>Expectations</th><th>Not met</th><th>Pages</th></tr></thead>
<tbody>{rows}</tbody>
</table>
</body>
</html>
"""


def make_offline(data_docs: Path, run_id: str, results: Sequence[SuiteResult]) -> None:
    """Rewrite every page below `data_docs` so that opening it loads nothing from elsewhere, and the index."""
    shutil.rmtree(data_docs / "static", ignore_errors=True)  # 4 MB of fonts and tutorials
    sheet = data_docs / STYLE_SHEET
    sheet.parent.mkdir(parents=True, exist_ok=True)
    sheet.write_text((Path(__file__).parent / "offline.css").read_text(encoding="utf-8"), encoding="utf-8")
    for page in sorted(data_docs.rglob("*.html")):
        up = "../" * (len(page.relative_to(data_docs).parts) - 1)
        link = f'<link rel="stylesheet" href="{up}{STYLE_SHEET}">'
        text = _REMOTE.sub("", page.read_text(encoding="utf-8"))
        page.write_text(text.replace("</head>", f"{link}</head>", 1), encoding="utf-8")
    rows = "".join(_row(data_docs, result) for result in results)
    index = _INDEX.format(run=escape(run_id), sheet=STYLE_SHEET, rows=rows)
    (data_docs / "index.html").write_text(index, encoding="utf-8")


def _row(data_docs: Path, result: SuiteResult) -> str:
    """Return one suite's line of the index, with links to the pages that there are."""
    pages = sorted((data_docs / "validations" / result.suite).rglob("*.html"))
    links = [f'<a href="{page.relative_to(data_docs).as_posix()}">result</a>' for page in pages]
    if (data_docs / "expectations" / f"{result.suite}.html").is_file():
        links.append(f'<a href="expectations/{escape(result.suite)}.html">expectations</a>')
    cells = [escape(result.suite), escape(result.verdict.name), str(result.evaluated), str(result.unsuccessful)]
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in [*cells, ", ".join(links)]) + "</tr>"
