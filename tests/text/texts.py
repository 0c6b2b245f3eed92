"""Texts that are hard to tokenise."""

from __future__ import annotations

from hypothesis import strategies as st

# Lower case that changes length or depends on neighbours, marks that part words, letters of one to four bytes.
ODD = "ΣσςİıßẞŉǅKÅΩȺⱥﬁ\u0307\u0301\u200d_9٣½²ªⅫⓐⒶ日本é\u00a0\u2003\u1680\x00\x1c\x85ÀÖÐÞàöðþ𐐀𐐨𝒜😀"
FAR = "𠀀\U000e0067\U000f0000\U0010ffff"  # beyond the first two planes

characters = st.one_of(
    st.characters(exclude_categories=["Cs"]), st.sampled_from(ODD + FAR), st.sampled_from("aB c.-'\n 1")
)
short = st.text(characters, max_size=80)
# Words at and around the lengths where the table changes its ways, and documents longer than a block.
long_words = st.builds(
    lambda c, n: c * n, st.sampled_from("aXé日𐐀"), st.sampled_from([7, 8, 9, 15, 16, 17, 33, 70, 300])
)
documents = st.lists(st.one_of(short, st.lists(st.one_of(short, long_words), max_size=12).map(" ".join)), max_size=8)
