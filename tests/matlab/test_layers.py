"""The interface stands on public names of rlmemory only, and does none of its work: read from the syntax trees."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import matlab_compat as mc
import rlmemory as rlm

FILES = sorted(Path(mc.__file__).parent.glob("*.py"))
TREES = {path.name: ast.parse(path.read_text(encoding="utf-8")) for path in FILES}
EACH_FILE = pytest.mark.parametrize("name", sorted(TREES))
HEAVY = ("numba", "scipy", "gymnasium", "h5py", "ray", "torch")


def imports(tree: ast.AST) -> Iterator[tuple[str, list[str]]]:
    """The modules that are imported from outside the package, and the names taken from each."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, []) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield str(node.module), [alias.name for alias in node.names]


@EACH_FILE
def test_only_numpy_and_rlmemory_are_imported(name: str) -> None:
    for module, _ in imports(TREES[name]):
        assert module.split(".")[0] in {*sys.stdlib_module_names, "numpy", "rlmemory"}


@EACH_FILE
def test_rlmemory_is_imported_whole_and_its_public_names_are_used(name: str) -> None:
    used = {
        node.attr
        for node in ast.walk(TREES[name])
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "rlm"
    }
    assert used <= {*rlm.__all__, "files"}  # files: a module of its own, with public names
    for module, _ in imports(TREES[name]):
        assert module == "rlmemory" or not module.startswith("rlmemory")


@EACH_FILE
def test_nothing_private_of_a_memory_is_touched(name: str) -> None:
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            owner = ast.unparse(node.value).split(".")[-1].split("(")[0]
            assert owner not in {"memory", "rlm", "store", "batch", "experience"} or node.attr in {
                "_replace",  # a NamedTuple's public method
                "_records",
                "_origin",  # a struct's, where `batch` is one
            }, ast.unparse(node)


def words(node: ast.AST) -> set[str]:
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    names |= {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
    return {word.lower() for word in names}


@EACH_FILE
def test_there_is_no_arithmetic_on_rewards(name: str) -> None:
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.BitOr):
            assert not any("reward" in word for word in words(node)), ast.unparse(node)
        if isinstance(node, (ast.AugAssign, ast.UnaryOp)) and not isinstance(getattr(node, "op", None), ast.Not):
            assert not any("reward" in word for word in words(node)), ast.unparse(node)


CHOOSING = {"random", "default_rng", "choice", "shuffle", "permutation", "integers", "argsort", "searchsorted", "take"}


@EACH_FILE
def test_no_index_is_chosen(name: str) -> None:
    called = {node.attr for node in ast.walk(TREES[name]) if isinstance(node, ast.Attribute)}
    assert not called & CHOOSING


def loops(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.For, ast.comprehension)):
            yield ast.unparse(node.iter)
        elif isinstance(node, ast.While):
            yield f"while {ast.unparse(node.test)}"


# What is looped over where experiences pass: channels, fields, specs and promises, never experiences.
FEW = (
    "reader", "specs", "channels", "leaves(", "cell", "_entries(", "FIELDS", "fields", "columns", "pairs",
    "('observation', 'action')", "('Observation', 'Action', 'NextObservation')", "ours", "theirs", "count and",
    "observation", "action", "self._unread", "unread", "state.items()", "names",
)  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [
        "layout.py", "results.py", "retrieval.py", "extensions.py", "buffers.py", "memories.py", "prioritized.py",
        "hindsight.py", "generated.py",
    ],
)  # fmt: skip
def test_no_loop_runs_over_experiences(name: str) -> None:
    for text in loops(TREES[name]):
        assert any(part in text for part in FEW), text
        assert "count" not in text.replace("count and", ""), text


def test_only_the_reader_of_struct_arrays_loops_over_experiences() -> None:
    found = [text for text in loops(TREES["functions.py"]) if "records" in text]
    assert found == ["enumerate(records if len(records) > 1 else ())"]


def test_only_the_judges_ask_about_one_experience_at_a_time() -> None:
    found = [text for text in loops(TREES["judges.py"]) if "range(" in text]
    assert found == ["range(len(fields[0][0]))"]


def test_rlmemory_does_not_know_this_package() -> None:
    for path in Path(rlm.__file__).parent.rglob("*.py"):
        for module, _ in imports(ast.parse(path.read_text(encoding="utf-8"))):
            assert not module.startswith("matlab_compat"), path


def in_new_process(code: str) -> str:
    check = f"import sys; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", f"{code}\n{check}"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_the_import_loads_nothing_heavy() -> None:
    assert in_new_process("import matlab_compat") == "[]"
    assert in_new_process("from matlab_compat import *") == "[]"


def test_append_and_all_experiences_load_nothing_heavy() -> None:
    code = """
from matlab_compat import *
buffer = rlReplayMemory(rlNumericSpec([2, 1]), rlFiniteSetSpec([-1, 1]), 100)
e = struct(Observation=[[1, 2]], Action=[1], NextObservation=[[1, 2]], Reward=1, IsDone=0)
append(buffer, e)
append(buffer, [e, e])
for mode in ("none", "batch", "sequence"):
    repr(allExperiences(buffer, ConcatenateMode=mode))
allExperiences(buffer)[2].Reward
resize(buffer, 2)
reset(buffer)
"""
    assert in_new_process(code) == "[]"
