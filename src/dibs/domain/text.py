"""Text from people, made safe to keep."""

from __future__ import annotations


def clean(text: str | None) -> str | None:
    """`text` whole, without surrounding blanks; None where nothing is left.

    PostgreSQL keeps no NUL characters and no lone surrogates, so the former are dropped and the latter
    are replaced by a question mark.
    """
    if text is None:
        return None
    kept = text.replace("\0", "").encode("utf-8", "replace").decode("utf-8").strip()
    return kept or None
