"""Each reason of an end has its row, and the words of one are read back as no other."""

from __future__ import annotations

from reconciler.model.end_reason import ENDS, EndReason


def test_each_reason_has_a_row() -> None:
    assert ENDS.keys() == {*EndReason}


def test_words_of_one_end_of_a_run_are_not_the_end_of_another_ones() -> None:
    over = [end.over for end in ENDS.values() if end.over]
    assert [[other for other in over if other.endswith(one)] for one in over] == [[one] for one in over]
