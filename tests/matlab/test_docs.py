"""The documents, docstrings and examples run."""

import doctest
import importlib
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import matlab_compat as mc

ROOT = Path(__file__).parents[2]
MODULES = sorted(path.stem for path in Path(mc.__file__).parent.glob("*.py") if path.stem != "__init__")
EXAMPLES = [ROOT / "examples" / "all_experiences.py", *sorted((ROOT / "examples").glob("matlab_*.py"))]


def python_blocks(page: Path) -> str:
    """The page with everything blanked but its Python blocks, so that line numbers stay true."""
    lines, inside = [], False
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("```"):
            inside = line == "```python"
            line = ""
        lines.append(line if inside else "")
    return "\n".join(lines)


def test_the_porting_guide_runs_from_top_to_bottom() -> None:
    page = ROOT / "docs" / "porting.md"
    exec(compile(python_blocks(page), page, "exec"), {})


def test_the_porting_guide_shows_every_function_of_matlab() -> None:
    text = (ROOT / "docs" / "porting.md").read_text(encoding="utf-8")
    for name in set(mc.__all__) - {"Cell", "gpuArray", "gather"}:
        assert re.search(rf"\b{name}\b", text), name


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_of_the_docstrings_run(module: str) -> None:
    names = {name: getattr(mc, name) for name in mc.__all__} | {"np": np}
    result = doctest.testmod(
        importlib.import_module(f"matlab_compat.{module}"), extraglobs=names, optionflags=doctest.ELLIPSIS
    )
    assert result.failed == 0


def test_there_are_examples() -> None:
    assert len(EXAMPLES) > 3


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out
