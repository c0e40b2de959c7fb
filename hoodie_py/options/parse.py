"""How the text of an option is read."""

from __future__ import annotations

from collections.abc import Mapping

from hoodie_py.options.read import CUSTOM_MERGER_CLASSES, CUSTOM_MERGER_CLASSES_ALIAS, QUERY_TYPE, QUERY_TYPE_ALIAS

_ALIASES = {QUERY_TYPE: (QUERY_TYPE_ALIAS,), CUSTOM_MERGER_CLASSES: (CUSTOM_MERGER_CLASSES_ALIAS,)}


def option(options: Mapping[str, str], key: str, default: str | None = None) -> str | None:
    """Return the non-empty value of ``key`` in ``options``, or of an older name of it, or ``default``."""
    for name in (key, *_ALIASES.get(key, ())):
        value = options.get(name)
        if value is not None and value.strip():
            return value.strip()
    return default


def flag(options: Mapping[str, str], key: str, default: bool) -> bool:
    """Return a yes-or-no option; as in Java everything but "true", in any case, means no."""
    value = option(options, key)
    return default if value is None else value.lower() == "true"
