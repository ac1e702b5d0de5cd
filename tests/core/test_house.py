"""The rules of the house, read off the syntax trees: which layer may import which, and where compiling is decided."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from .support import ROOT

PACKAGE = ROOT / "rlmemory"
FILES = sorted(PACKAGE.rglob("*.py"))
IDS = [str(path.relative_to(PACKAGE)) for path in FILES]

#: What the lower layers may import of the package. The others: whatever makes no circle.
ALLOWED = {
    "errors": set(),
    "kernels": {"errors"},
    "ring": set(),
    "blocks": set(),
    "batch": {"device_array"},
    "specs": {"errors"},
    "statistics": set(),
    "spaces": {"errors", "specs"},
    "structures": {"errors", "specs"},
    "device_array": {"errors"},
    "borrowed": {"device_array", "errors"},
    "accept": {"borrowed", "errors", "specs"},
    "options": {"errors", "accept"},
    "arena": {"errors", "blocks"},
    "timeline": {"kernels", "ring"},
    "placing": {"borrowed", "device_array", "errors"},
    "nested": {"device_array", "errors", "placing"},
    "rawbytes": {"kernels"},
    "padding": {"accept", "borrowed", "errors", "nested"},
    "cuts": {"accept", "errors", "kernels", "nested", "rawbytes"},
    "device_runs": {"device_array", "placing", "rawbytes"},
    "trajectories": {
        "cuts",
        "device_array",
        "device_runs",
        "errors",
        "nested",
        "padding",
        "placing",
        "rawbytes",
    },
    "joining": {"device_array", "device_runs", "errors", "nested", "placing", "rawbytes"},
    "steps": {"accept", "device_array", "errors"},
    "device_returns": {"borrowed", "device_array", "placing", "steps"},
    "returns": {"device_returns", "kernels", "rawbytes", "steps"},
}
#: Loaded with the package: they import nothing but NumPy and the standard library at their top.
HEAVY = {"numba", "llvmlite", "scipy", "gymnasium", "h5py", "ray", "torch", "tqdm", "matplotlib", "matlab_compat"}


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def loaded_nodes(node: ast.AST, *, late: bool) -> Iterator[ast.AST]:
    """Nodes that run when the module does; with `late`, those in functions too. Never those for type checkers."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        yield child
        if late or not isinstance(child, (ast.FunctionDef, ast.Lambda)):
            yield from loaded_nodes(child, late=late)


def imports(path: Path, *, late: bool = False) -> set[str]:
    """The modules of the package, as ".name", and the packages outside, that a file imports."""
    depth = len(path.relative_to(PACKAGE).parts)
    found: set[str] = set()
    for node in loaded_nodes(tree(path), late=late):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add((node.module or "").split(".")[0])
        elif isinstance(node, ast.ImportFrom) and node.level == depth:
            names = [node.module] if node.module else [alias.name for alias in node.names]
            found |= {"." + name.split(".")[0] for name in names}
    return found


def module_of(path: Path) -> str:
    """The module of the package that a file belongs to: all kernels are one."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def graph(*, late: bool) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for path in FILES:
        own = {name[1:] for name in imports(path, late=late) if name.startswith(".")}
        found.setdefault(module_of(path), set()).update(own - {module_of(path), "__version__"})
    return found


@pytest.mark.parametrize("name", ALLOWED)
def test_the_lower_layers_import_downward_only(name):
    assert graph(late=False)[name] <= ALLOWED[name]


def test_no_two_modules_import_each_other():
    order = list(TopologicalSorter(graph(late=False)).static_order())
    assert order.index("errors") < order.index("store") < order.index("memory")


def test_nothing_in_the_package_knows_the_facade():
    for path in FILES:
        assert "matlab_compat" not in imports(path, late=False), path


#: Modules that are loaded for what they need: numba, and Gymnasium's classes.
NEEDS_MORE = {"kernels", "wrappers"}


@pytest.mark.parametrize("path", [path for path in FILES if module_of(path) not in NEEDS_MORE], ids=module_of)
def test_no_module_outside_the_kernels_loads_anything_heavy_at_its_top(path):
    assert not imports(path) & HEAVY


def decorators(path: Path) -> set[str]:
    """The last name of every decorator and of every call in a file."""
    names = set()
    for node in ast.walk(tree(path)):
        marks = node.decorator_list if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else []
        marks = [*marks, node.func] if isinstance(node, ast.Call) else marks
        for mark in marks:
            mark = mark.func if isinstance(mark, ast.Call) else mark
            names.add(mark.attr if isinstance(mark, ast.Attribute) else getattr(mark, "id", ""))
    return names


@pytest.mark.parametrize("path", FILES, ids=IDS)
def test_compiling_is_decided_in_one_place(path):
    if module_of(path) != "kernels":
        assert "numba" not in imports(path, late=True)
        assert not decorators(path) & {"njit", "jit", "vectorize", "guvectorize", "intrinsic", "kernel"}
    elif path.stem not in ("_jit", "_cuda"):
        assert not decorators(path) & {"njit", "jit", "vectorize", "guvectorize"}


@pytest.mark.parametrize("path", [path for path in FILES if path.parent.name == "kernels"], ids=lambda path: path.stem)
def test_kernels_draw_nothing_raise_nothing_and_know_no_class(path):
    if path.stem.split("_")[0] in ("reference", "cpu"):
        for node in ast.walk(tree(path)):
            assert not isinstance(node, (ast.Raise, ast.Try, ast.ClassDef, ast.Global))
            assert not (isinstance(node, ast.Attribute) and node.attr == "random")


def code_lines(function: ast.FunctionDef) -> int:
    """Lines of a function's body that are neither its docstring, nor comments, nor blank."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return len({inner.lineno for node in body for inner in ast.walk(node) if hasattr(inner, "lineno")})


@pytest.mark.parametrize("path", FILES, ids=IDS)
def test_functions_and_files_are_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef):
            assert code_lines(node) <= 45, node.name


@pytest.mark.parametrize("path", FILES, ids=IDS)
def test_every_function_and_class_with_a_public_name_has_a_docstring(path):
    assert ast.get_docstring(tree(path))
    if path.stem.split("_")[0] in ("cpu", "cuda"):  # said once, in the reference
        return
    for node in tree(path).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
            assert ast.get_docstring(node), node.name
