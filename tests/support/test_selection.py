"""What a run without --all leaves out: the rest of grids, and tests that exist."""

from tests.support.selection import TESTS, covering, rare


def test_as_few_cases_of_a_grid_stay_as_have_all_values() -> None:
    assert covering([{"a"}, {"b"}, {"a", "c"}, {"d"}]) == {1, 2, 3}
    assert covering([]) == covering([set()]) == set()


def test_what_is_rare_exists() -> None:
    for prefix in rare():
        path, _, test = prefix.partition("::")
        assert (TESTS / path).exists(), prefix
        function = test.partition("[")[0]
        assert f"def {function}" in (TESTS / path).read_text() if test else True, prefix


def test_slow_tests_run_with_their_option_alone() -> None:
    quick, slow = rare(), rare(slow=True)
    changed = {prefix for prefix in quick if quick[prefix] != slow[prefix]}
    assert slow["firmware/test_ptq.py"] == 1 and slow["unit/tensorize/test_narrow.py"] == 2
    assert 0 not in {slow[prefix] for prefix in changed}
    assert {quick[prefix] for prefix in changed} == {0}
