"""Docstrings: there, complete, and their examples run."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re

import pytest

import rlmemory as rlm

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(rlm.__path__, "rlmemory.")
    if not module.name.endswith("__main__") and not module.name.startswith("rlmemory.demo")
)
SECTION = re.compile(r"^(\w[\w ]*)\n-+$", re.M)


def public_callables() -> list:
    """Every public function, class, method and property, by the name that a user writes."""
    found = [(f"files.{name}", getattr(rlm.files, name)) for name in rlm.files.__all__]
    for name in rlm.__all__:
        thing = getattr(rlm, name)
        found.append((name, thing))
        if inspect.isclass(thing) and not issubclass(thing, (Exception, tuple)):
            own = [(key, value) for key, value in inspect.getmembers(thing) if not key.startswith("_")]
            found += [(f"{name}.{key}", value) for key, value in own if callable(value) or isinstance(value, property)]
    return [pytest.param(thing, id=name) for name, thing in found]


def takes_nothing(thing: object) -> bool:
    """Exceptions and records: their fields are explained as attributes."""
    return inspect.isclass(thing) and issubclass(thing, (Exception, tuple))


def sections(thing: object) -> dict[str, str]:
    """The numpydoc sections of a docstring; the text before the first is under ''."""
    parts = SECTION.split(inspect.getdoc(thing) or "")
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def documented(section: str) -> set[str]:
    """The names that a section of parameters explains: those at the margin, before a colon."""
    names = [re.match(r"(\**[\w, *]+?)(?: \(.*| :.*|)$", line) for line in section.splitlines() if line[:1].strip()]
    return {part.strip().lstrip("*") for match in names if match for part in match[1].split(",")}


@pytest.mark.parametrize("name", rlm.__all__)
def test_every_public_name_loads_and_is_listed(name):
    assert getattr(rlm, name).__module__.startswith("rlmemory")
    assert name in dir(rlm)
    assert rlm._HOME[name]


def test_the_lists_of_public_names_agree():
    assert sorted(rlm.__all__) == sorted(rlm._HOME)
    assert sorted(set(rlm.__all__)) == sorted(rlm.__all__)


@pytest.mark.parametrize("thing", public_callables())
def test_a_docstring_begins_with_one_line_that_ends_in_a_full_stop(thing):
    lines = (inspect.getdoc(thing) or "").splitlines()
    assert lines, "no docstring"
    assert lines[0].endswith(".")
    assert len(lines) == 1 or not lines[1]


@pytest.mark.parametrize("thing", [case for case in public_callables() if not takes_nothing(case.values[0])])
def test_every_parameter_is_explained(thing):
    function = thing.fget if isinstance(thing, property) else thing
    parameters = {name for name in inspect.signature(function).parameters if name != "self"}
    said = documented(sections(thing).get("Parameters", ""))
    if getattr(thing, "__name__", "") == "same_layout":  # one argument, explained in the first line
        return
    assert parameters == said


@pytest.mark.parametrize("thing", public_callables())
def test_sections_are_those_of_numpydoc_and_in_its_order(thing):
    order = [
        "", "Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns", "See Also", "Notes", "References",
        "Examples",
    ]  # fmt: skip
    found = list(sections(thing))
    assert set(found) <= set(order)
    assert found == sorted(found, key=order.index)


@pytest.mark.parametrize("record", [rlm.Experience, rlm.Batch])
def test_every_field_of_a_record_is_explained(record):
    assert documented(sections(record)["Attributes"]) == set(record._fields)


@pytest.mark.parametrize("name", MODULES)
def test_every_module_says_what_it_is_for(name):
    module = importlib.import_module(name)
    assert (module.__doc__ or "").splitlines()[0].endswith((".", ":"))


@pytest.mark.parametrize("name", ["rlmemory", *MODULES])
def test_the_examples_of_a_module_run(name):
    module = importlib.import_module(name)
    failed, _ = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0


def test_there_are_examples():
    finder = doctest.DocTestFinder()
    count = sum(bool(test.examples) for name in MODULES for test in finder.find(importlib.import_module(name)))
    assert count >= 5
