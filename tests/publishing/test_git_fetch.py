"""Following two branches of a remote that other people move."""

from __future__ import annotations


def test_branch_that_does_not_exist_yet_is_none(remote, repository):
    source = remote.commit("main", {"a.yaml": "a: 1\n"})
    tips = repository.fetch()
    assert (tips.source, tips.output, tips.output_at) == (source, None, None)
