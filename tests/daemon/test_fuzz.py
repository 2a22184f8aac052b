"""A slice of `python -m tests.fuzz`: no input of any reader ends in an exception that was not raised on purpose."""

from tests.fuzz.campaign import campaign


def test_no_file_record_object_answer_or_body_raises_what_nothing_foresaw() -> None:
    tried, findings = campaign(60, seed=0, inputs=10)
    assert set(tried.values()) == {10}
    assert not findings, "\n".join(map(str, findings.values()))
