"""Every Python block of the README and of the docs runs, and every file they link to is there."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")


def blocks_of(text: str) -> list[tuple[int, str]]:
    """The Python blocks of a page, each with the number of the line that it begins on."""
    return [(text[: match.start(2)].count("\n"), match[2]) for match in FENCE.finditer(text) if match[1] == "python"]


def run_block(source: str, name: str, line: int, namespace: dict[str, Any]) -> None:
    if source.lstrip().startswith(">>>"):
        test = doctest.DocTestParser().get_doctest(source, namespace, name, name, line)
        report: list[str] = []
        doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=report.append, clear_globs=False)
        assert not report, "".join(report)
        namespace.update(test.globs)
    else:  # as many empty lines in front as the page has: a traceback then shows the page's own line
        exec(compile("\n" * line + source, name, "exec"), namespace)


#: Their blocks need a device, or the simulator of one.
ON_A_DEVICE = {"gpu.md"}


@pytest.mark.parametrize("page", [page for page in PAGES if blocks_of(page.read_text("utf-8"))], ids=lambda p: p.name)
def test_the_blocks_of_a_page_run_in_order(page, tmp_path, monkeypatch, request):
    if page.name in ON_A_DEVICE:
        request.getfixturevalue("cuda_device")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": page.stem}
    for line, source in blocks_of(page.read_text("utf-8")):
        run_block(source, str(page), line, namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_linked_file_is_there(page):
    targets = [target for target in LINK.findall(page.read_text("utf-8")) if "://" not in target]
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert missing == []


def test_a_block_that_fails_is_noticed():
    line, source = blocks_of("text\n\n```python\nassert 1 == 2\n```\n")[0]
    with pytest.raises(AssertionError):
        run_block(source, "page", line, {})


def test_a_session_whose_output_differs_is_noticed():
    line, source = blocks_of("```python\n>>> 1 + 1\n3\n```\n")[0]
    with pytest.raises(AssertionError, match="Expected"):
        run_block(source, "page", line, {})
