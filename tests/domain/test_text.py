from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.domain.text import clean


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        (None, None),
        ("", None),
        (" \n\t ", None),
        ("\0", None),
        ("a\0b", "ab"),
        ("  two  words ", "two  words"),
        ("\ud800", "?"),
        ("😀", "😀"),
        ("line\nline", "line\nline"),
    ],
)
def test_what_is_kept_of_a_text(typed: str | None, kept: str | None) -> None:
    assert clean(typed) == kept


@given(st.text(st.characters(codec=None, exclude_categories=())))
def test_any_text_can_be_kept_and_cleaning_again_changes_nothing(typed: str) -> None:
    kept = clean(typed)
    assert kept is None or (kept.encode() and "\0" not in kept and kept.strip() == kept)
    assert clean(kept) == kept
