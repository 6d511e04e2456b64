"""Hooks of MkDocs: pages of the repository's root, links between them and docs/, and links to the glossary."""

import posixpath
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
DOCS = "docs/"
ROOT_PAGES: Mapping[str, str] = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
"""Pages outside docs/, by what the site calls them."""
_SOURCES = {page: source for source, page in ROOT_PAGES.items()}
GLOSSARY = "glossary.md"
_SHIM = "https://unpkg.com/iframe-worker/shim"
_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
_IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")
_TERM = re.compile(r'^\| <a id="([a-z-]+)"></a>([^|]+) \|', re.MULTILINE)
_APART = re.compile(
    r"(^```.*?^```$|^    [^\n]*$|^#[^\n]*$|^<[^\n]*$|`[^`\n]*`|!?\[[^\]]*\]\([^)]*\)|<[^>\n]*>"
    r"|\bfile\s+systems?\b|\boperating\s+systems?\b|\brun\s+time\b|\b(?:[Tt]he )?history of every\b"
    r"|\b(?:to|they|that|which|and|can|must|may|not|it|brokers|servers|clients|tests|checks|chaos|Airflow)\s+runs?\b"
    r"|\b[Rr]uns? (?:a|an|the|it|them|on|in|with|without)\b)",
    re.DOTALL | re.MULTILINE,
)
"""Code, headings, HTML and links, and other uses of a term's word: no term is linked there."""


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of the repository's root; without index.md, docs/decisions/README.md keeps its place."""
    for source, page in ROOT_PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Return a page whose links lead to pages of the site, and whose first uses of terms lead to the glossary."""
    name = page.file.src_uri
    source = _SOURCES.get(name, DOCS + name)
    linked = _IMAGE.sub(lambda match: f"![{match[1]}]({_target(match[2], source, name)})", markdown)
    linked = _LINK.sub(lambda match: _link(match[1], match[2], source, name), linked)
    return linked if name == GLOSSARY or name.startswith("decisions/0") else with_terms(linked, name)


def _link(text: str, target: str, source: str, name: str) -> str:
    """Return a link within the site, or the text alone where the target is a file of the code."""
    mapped = _target(target, source, name)
    return f"[{text}]({mapped})" if mapped else text


def _target(target: str, source: str, name: str) -> str:
    """Return where a link leads from a page of the site; empty if the site does not have it."""
    if "://" in target or target.startswith("#"):
        return target
    path, hash_, anchor = target.partition("#")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    if path not in ROOT_PAGES and not path.startswith(DOCS):
        return ""
    page = ROOT_PAGES.get(path, path.removeprefix(DOCS))
    return posixpath.relpath(page, posixpath.dirname(name) or ".") + hash_ + anchor


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Return a page that loads the worker for search from the site instead of from a public server."""
    return output.replace(_SHIM, posixpath.relpath("iframe-worker.js", posixpath.dirname(page.file.dest_uri) or "."))


def on_post_template(output: str, template_name: str, config: Any) -> str:
    """Return 404.html without that worker: it lies at no fixed depth, and nothing is searched from it."""
    return output.replace(f'<script src="{_SHIM}"></script>', "")


@cache
def terms() -> Mapping[str, str]:
    """Return the glossary's terms with their anchors, longer ones first."""
    text = (ROOT / DOCS / GLOSSARY).read_text(encoding="utf-8")
    pairs = {term: anchor for anchor, term in _TERM.findall(text)}
    return dict(sorted(pairs.items(), key=lambda pair: -len(pair[0])))


def with_terms(markdown: str, name: str) -> str:
    """Return a page on which the first use of each term, outside code, headings and links, leads to the glossary."""
    glossary = posixpath.relpath(GLOSSARY, posixpath.dirname(name) or ".")
    parts = _APART.split(markdown)
    for term, anchor in terms().items():
        word = re.compile(rf"(?<![\w./-]){re.escape(term)}s?(?![\w/-])")
        for number in range(0, len(parts), 2):
            replaced, count = word.subn(
                lambda match, anchor=anchor: f"[{match[0]}]({glossary}#{anchor}){{.term}}", parts[number], count=1
            )
            if count:
                parts[number : number + 1] = _APART.split(replaced)
                break
    return "".join(parts)
