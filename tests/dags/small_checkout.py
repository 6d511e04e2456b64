"""A checkout whose night has three steps of a second, for tests of what carries it out."""

import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

STEPS = '''
import sys
from dataclasses import dataclass, field
from pathlib import Path

LONGEST_S = 60.0
FAILING = "print('found it', flush=True); sys.exit(1)"
WAITING = """
import time
folder = Path(sys.argv[1])
try:
    (folder / "begun").write_text("")
    time.sleep(120)
except KeyboardInterrupt:
    (folder / "cleaned up").touch()
"""

@dataclass(frozen=True, kw_only=True)
class Step:
    name: str
    about: str = "About."
    command: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    doubtful: frozenset[int] = frozenset()
    lacking: str = ""
    passing: int = 0

def limit_s(scale):
    return LONGEST_S

def steps(scale, seed, folder):
    def step(name, code):
        code = f"import sys; from pathlib import Path; {code}"
        return Step(name=name, command=(sys.executable, "-c", code, str(folder)))
    made = [step("passing", f"print({seed}, {scale})"), step("failing", FAILING)]
    return made if scale < 1 else [*made, step("waiting", f"exec({WAITING!r})")]
'''


def small_checkout(root: Path) -> Path:
    """Make one."""
    nightly = root / "tools" / "nightly"
    shutil.copytree(ROOT / "tools" / "nightly", nightly, ignore=shutil.ignore_patterns("__pycache__"))
    (nightly.parent / "__init__.py").touch()  # or the package of the real checkout would be taken
    (nightly / "steps.py").write_text(STEPS, encoding="utf-8")
    (root / "tests" / "mutation").mkdir(parents=True)
    return root
