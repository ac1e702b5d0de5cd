"""The coverage table says what is there, and what is there is in the table."""

import inspect
from pathlib import Path
from typing import Any

import pytest

import matlab_compat as mc
from matlab_compat import coverage

from . import test_differences

ROWS = {row.name: row for row in coverage.ROWS}
PAGE = Path(__file__).parents[2] / "docs" / "matlab.md"


def test_names_are_unique_and_states_known() -> None:
    assert len(ROWS) == len(coverage.ROWS)
    for row in coverage.ROWS:
        assert row.state in coverage.STATES
        assert all(option.state in coverage.STATES for option in row.options)
        assert len({option.name for option in row.options}) == len(row.options)


def test_every_export_has_a_row_and_every_other_row_is_missing() -> None:
    assert {name for name, row in ROWS.items() if row.state != "missing"} == set(mc.__all__)


def test_every_name_in_all_loads() -> None:
    for name in mc.__all__:
        assert getattr(mc, name) is not None


def options_of(name: str) -> set[str]:
    """The keyword-only parameters, and the public properties of a class."""
    value: Any = getattr(mc, name)
    function = value.__init__ if inspect.isclass(value) else value
    parameters = inspect.signature(function).parameters.values()
    names = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
    if inspect.isclass(value) and name.startswith("rl"):
        names |= {key for key in dir(value) if key[0].isupper()}
    return names


@pytest.mark.parametrize("name", mc.__all__)
def test_every_option_has_a_row_and_every_row_is_an_option(name: str) -> None:
    assert {option.name for option in ROWS[name].options} == options_of(name)


def test_every_difference_is_numbered_used_and_has_a_test_of_its_number() -> None:
    assert list(coverage.DIFFERENCES) == list(range(1, len(coverage.DIFFERENCES) + 1))
    used = {number for row in coverage.ROWS for number in row.differences}
    assert used == set(coverage.DIFFERENCES)
    tests = [name for name in vars(test_differences) if name.startswith("test_difference_")]
    assert sorted(int(name.split("_")[2]) for name in tests) == list(coverage.DIFFERENCES)


def test_a_row_with_differences_does_not_claim_to_have_none() -> None:
    for row in coverage.ROWS:
        if row.state == "differs":
            assert row.differences


def test_the_page_is_what_the_table_renders() -> None:
    hint = "run: python -m matlab_compat.coverage > docs/matlab.md"
    assert PAGE.read_text(encoding="utf-8") == coverage.rendered(), hint


def test_every_public_name_has_a_whole_docstring() -> None:
    for name in mc.__all__:
        text = inspect.getdoc(getattr(mc, name)) or ""
        for section in ("Parameters", "Returns", "Notes", "Examples"):
            assert f"{section}\n{'-' * len(section)}" in text, (name, section)
        assert ">>> " in text
        assert "MATLAB" in text


@pytest.mark.parametrize("name", mc.__all__)
def test_every_parameter_is_in_the_docstring(name: str) -> None:
    value: Any = getattr(mc, name)
    function = value.__init__ if inspect.isclass(value) else value
    text = inspect.getdoc(value) or ""
    for parameter in inspect.signature(function).parameters:
        if parameter not in ("self", "args", "kwargs"):
            assert parameter in text
