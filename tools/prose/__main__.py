"""Check the prose of documents and of Python, and the spelling of all files: `python -m tools.prose [FILE…]`."""

import subprocess
import sys
from pathlib import Path

from codespell_lib import main as codespell

from tools.prose.lint import problems, problems_of_python

ROOT = Path(__file__).parents[2]
WORDS = Path(__file__).with_name("words.txt")
SPELLED = (".md", ".py", ".pyi", ".yaml", ".yml", ".toml", ".j2", ".css", ".html")
LINTS = {".md": problems, ".py": problems_of_python}
EXAMPLES = "tests/tools/test_prose.py"
"""Its texts are what must not be written."""


def tracked() -> list[Path]:
    """Return the repository's own files."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = (ROOT / name for name in listed.split("\0") if name)
    return [path for path in paths if path.suffix in SPELLED and path.is_file()]


def main(names: list[str]) -> int:
    """Return the exit code; problems are printed with their file and line."""
    paths = [Path(name) for name in names] or tracked()
    count = 0
    for path in (path for path in paths if path.suffix in LINTS and path != ROOT / EXAMPLES):
        for line, problem in LINTS[path.suffix](path.read_text(encoding="utf-8")):
            print(f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}:{line}: {problem}")
            count += 1
    misspelt = codespell("--ignore-words", str(WORDS), "--quiet-level", "3", *map(str, paths))
    return int(bool(count or misspelt))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
