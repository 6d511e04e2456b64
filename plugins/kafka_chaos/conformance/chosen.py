"""Which plugins does a run of the suite test?"""

from pathlib import Path

import pytest

from harness.contracts.registry import Kind
from harness.errors import PluginError
from harness.system.plugins import OWN, Plugin, found, only, use_folders

INI = "chaos_plugins"


def chosen(config: pytest.Config, kind: Kind) -> list[str]:
    """Return the names of the plugins of a kind that are tested.

    Raises:
        pytest.UsageError: there is nothing to test, or something that was named does not exist.
    """
    every = _all(config)
    return [each.name for each in every if each.kind is kind]


def _all(config: pytest.Config) -> list[Plugin]:
    wanted = [*config.getoption(INI), *config.getini(INI)]
    use_folders(text for text in wanted if "/" in text)
    known = [each for kind in Kind if kind is not Kind.SCENARIO for each in found(kind).plugins]
    broken = dict.fromkeys(sentence for kind in Kind for sentence in found(kind).broken)
    plugins = [each for text in wanted for each in _named(text, known)] if wanted else _of_others(known)
    if not plugins or broken:
        nothing = (
            ""
            if plugins
            else f"no other distribution with plugins is installed; name one: --{INI.replace('_', '-')} NAME"
        )
        raise pytest.UsageError("\n".join(filter(None, (nothing, *broken))))
    return list(dict.fromkeys(plugins))


def _of_others(known: list[Plugin]) -> list[Plugin]:
    return [each for each in known if each.provider.name != OWN]


def _named(text: str, known: list[Plugin]) -> list[Plugin]:
    kind, colon, name = text.partition(":")
    try:
        if colon:
            return [only(Kind(f"{kind}s"), name)]
    except (PluginError, ValueError) as error:
        raise pytest.UsageError(f"{text}: {error}") from error
    folder = Path(text).resolve() if "/" in text else None
    plugins = [
        each for each in known if each.provider.name == text.rstrip("/") or folder in each.path.resolve().parents
    ]
    if not plugins:
        providers = ", ".join(dict.fromkeys(each.provider.name for each in known))
        place = f"; the folder is written ./{text}" if "/" not in text and Path(text).is_dir() else ""
        raise pytest.UsageError(
            f"{text} brings no plugins; those that do: {providers}; or name one, as fault:nap{place}"
        )
    return plugins
