"""What is said where there is no device, or not that one, or no room on it; the first part runs without a device."""

from __future__ import annotations

import base64
import multiprocessing
import os
import pickle
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from core.support import ROOT, python

import rlmemory as rlm
from rlmemory.kernels import _cuda

from .pairs import LAYOUTS, make, row_of, story
from .support import RUNS, SIMULATED, needs_device, unchanged

Spec = rlm.NumericSpec
NAME = "one array"


def memory(device: str, **keywords: Any) -> rlm.ReplayMemory:
    return rlm.ReplayMemory(Spec(()), Spec(()), 4, device=device, **keywords)


def filled(device: str) -> rlm.ReplayMemory:
    made = make(NAME, 9, device)
    made.extend(**story(LAYOUTS[NAME], np.random.default_rng(0), 12))
    return made


# ---- with a device or without ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "device", ["gpu", "CUDA", "cuda:", "cuda:x", "cuda:-1", "cuda:1.0", "cuda0", "", "cuda:0:1", "cpu:0"]
)
def test_a_name_that_is_none_is_refused_with_those_that_are(device):
    for ask in (memory, filled("cpu").to, lambda name: rlm.to_device(1.0, name)):
        with pytest.raises(
            rlm.NotAvailableError, match=f"device={re.escape(repr(device))}: expected 'cpu', 'cuda' or 'cuda:N'"
        ):
            ask(device)


@pytest.mark.parametrize("device", [None, 0, ["cuda"], b"cuda"])
def test_a_device_that_is_no_string_is_refused(device):
    with pytest.raises(rlm.NotAvailableError, match="expected 'cpu', 'cuda' or 'cuda:N'"):
        memory(device)


def test_a_file_cannot_be_on_a_device(tmp_path: Path):
    with pytest.raises(rlm.NotAvailableError, match=r"path.*cuda.*one of the two"):
        memory("cuda", path=tmp_path / "arena")
    assert not (tmp_path / "arena").exists()


def test_a_memory_with_a_path_does_not_move(tmp_path: Path):
    kept = memory("cpu", path=tmp_path / "arena")
    assert kept.to("cpu") is kept
    if RUNS:
        with pytest.raises(rlm.NotPickleableError, match="arena"):
            kept.to("cuda")


class Devices:
    """What `cuda.gpus` is to the package."""

    def __init__(self, count: int | Exception) -> None:
        self.count = count

    def __len__(self) -> int:
        if isinstance(self.count, Exception):
            raise self.count
        return self.count


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Say how many devices there are."""
    return lambda count: monkeypatch.setattr(_cuda, "cuda", SimpleNamespace(gpus=Devices(count)))


ASKS = {
    "made": lambda device: memory(device),
    "moved": lambda device: filled("cpu").to(device),
    "array": lambda device: rlm.to_device(np.ones(2), device),
}


@pytest.mark.parametrize("ask", sorted(ASKS))
def test_without_a_driver_the_error_says_what_to_install(ask, found):
    found(RuntimeError("Error at driver init: \n\nCUDA driver library cannot be found.\nIf you are sure ..."))
    with pytest.raises(
        rlm.NotAvailableError,
        match=r"device='cuda:0': .*\(CUDA driver library cannot be found\).*rlmemory\[cuda\].*'cpu'",
    ):
        ASKS[ask]("cuda:0")


@pytest.mark.parametrize("ask", sorted(ASKS))
def test_a_driver_without_a_device_is_told_apart(ask, found):
    found(0)
    with pytest.raises(rlm.NotAvailableError, match="driver, but no device"):
        ASKS[ask]("cuda:0")


@pytest.mark.parametrize("ask", sorted(ASKS))
@pytest.mark.parametrize("number", [2, 17])
def test_a_number_too_high_is_refused_with_how_many_there_are(ask, number, found):
    found(2)
    with pytest.raises(rlm.NotAvailableError, match=f"'cuda:{number}'.*has 2"):
        ASKS[ask](f"cuda:{number}")


def test_the_last_device_is_one(found):
    found(2)
    assert _cuda.device_number("cuda:1") == 1


def test_page_locked_batches_need_a_driver(found):
    here = filled("cpu")
    found(RuntimeError("no driver"))
    with unchanged(here), pytest.raises(rlm.NotAvailableError, match=r"pinned: .*no driver"):
        here.sample(3, pinned=True)


@pytest.mark.skipif(RUNS, reason="there is a device")
def test_this_machine_says_that_it_has_no_device():
    for ask in ASKS.values():
        with pytest.raises(rlm.NotAvailableError, match=r"device='cuda'.*'cpu'"):
            ask("cuda")
    with pytest.raises(rlm.NotAvailableError, match="pinned"):
        filled("cpu").sample(2, pinned=True)


# ---- in the simulator, or on a device -------------------------------------------------------------------------------


@needs_device
def test_page_locked_batches_are_filled_again():
    here, plain = filled("cpu"), filled("cpu")
    first = here.sample(4, pinned=True)
    assert isinstance(first.reward, np.ndarray)
    assert first.reward.tolist() == plain.sample(4).reward.tolist()
    second = here.sample(4, pinned=True, out=first)
    assert np.shares_memory(first.id, second.id)
    assert second.reward.tolist() == plain.sample(4).reward.tolist()
    third = here.sample(4, out=second)  # page-locked memory does for any batch
    assert np.shares_memory(first.id, third.id)
    with pytest.raises(rlm.StructureError, match="page-locked"):
        here.sample(4, pinned=True, out=here.sample(4))


@needs_device
@pytest.mark.parametrize("error", [MemoryError(), "CUDA_ERROR_OUT_OF_MEMORY"], ids=repr)
def test_a_device_without_room_says_how_much_was_asked_for_and_is_free(error, monkeypatch):
    full_of(monkeypatch, error)
    with pytest.raises(MemoryError, match=r"no room for 1,\d\d\d bytes: 3,000 of 9,000 bytes are free.*smaller"):
        rlm.ReplayMemory(Spec((8,)), Spec(()), 7, device="cuda")
    with pytest.raises(MemoryError, match=r"800 bytes: 3,000"):
        rlm.to_device(np.ones(100))


def full_of(monkeypatch: pytest.MonkeyPatch, error: Any) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise error if isinstance(error, Exception) else api_error(error)

    monkeypatch.setattr(_cuda.cuda, "device_array", refuse)
    context = SimpleNamespace(get_memory_info=lambda: (3000, 9000), device=SimpleNamespace(id=0))
    monkeypatch.setattr(_cuda.cuda, "current_context", lambda *_: context)


def api_error(words: str) -> Exception:
    return _cuda.CudaAPIError(words) if SIMULATED else _cuda.CudaAPIError(2, words)


@needs_device
def test_a_full_device_leaves_memories_as_they_are(monkeypatch):
    here, there = filled("cpu"), filled("cuda")
    with unchanged(here), unchanged(there), monkeypatch.context() as patch:
        full_of(patch, MemoryError())
        for ask in (
            lambda: here.to("cuda"), lambda: there.sample(3), there.all, lambda: there.get([5]),
            lambda: there.resize(99), lambda: there.sample(2, sequence_length=3),
        ):  # fmt: skip
            with pytest.raises(MemoryError, match="free"):
                ask()


@needs_device
def test_other_errors_of_the_driver_are_not_taken_for_a_lack_of_room(monkeypatch):
    monkeypatch.setattr(_cuda.cuda, "device_array", raiser(api_error("CUDA_ERROR_ILLEGAL_ADDRESS")))
    with pytest.raises(_cuda.CudaAPIError, match="ILLEGAL"):
        memory("cuda")


@needs_device
def test_without_room_for_page_locked_memory_the_error_is_one_of_room(monkeypatch):
    monkeypatch.setattr(_cuda.cuda, "pinned_array", raiser(api_error("CUDA_ERROR_OUT_OF_MEMORY")))
    with pytest.raises(MemoryError, match="page-locked"):
        memory("cuda")
    with pytest.raises(MemoryError, match="page-locked"):
        filled("cpu").sample(2, pinned=True)


def raiser(error: Exception) -> Any:
    def refuse(*_: Any, **__: Any) -> None:
        raise error

    return refuse


# ---- other processes ------------------------------------------------------------------------------------------------

USES = {
    "sample": lambda m: m.sample(2),
    "all": lambda m: m.all(),
    "append": lambda m: m.append(**row_of(story(LAYOUTS[NAME], np.random.default_rng(0), 1), 0)),
    "extend": lambda m: m.extend(**story(LAYOUTS[NAME], np.random.default_rng(0), 2)),
    "to": lambda m: m.to("cpu"),
    "pickle": pickle.dumps,
    "resize": lambda m: m.resize(3),
}


def in_a_fork(function: Any) -> str:
    """What a forked child says: the name of the error, and its words."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()

    def work() -> None:
        try:
            function()
            there.send("nothing")
        except BaseException as error:
            there.send(f"{type(error).__name__}: {error}")

    child = context.Process(target=work)
    child.start()
    try:
        assert here.poll(30), "the child hangs"
        return here.recv()
    finally:
        child.kill()
        child.join()


@needs_device
@pytest.mark.skipif(not SIMULATED, reason="the child's part is the same; a real driver does not like forks")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("use", sorted(USES))
@pytest.mark.parametrize("held", [False, True])
def test_a_forked_child_is_told_that_it_cannot_use_the_device(use, held):
    there = filled("cuda")
    if held:
        with there._lock:  # nobody would ever give it back in the child
            said = in_a_fork(lambda: USES[use](there))
    else:
        said = in_a_fork(lambda: USES[use](there))
    assert said.startswith("NotAvailableError: a forked child cannot use the GPU"), said
    assert "spawn" in said
    there.sample(2)


@needs_device
@pytest.mark.skipif(not SIMULATED, reason="the child's part is the same; a real driver does not like forks")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_child_of_a_forked_child_is_told_so_too():
    there = filled("cuda")
    said = in_a_fork(lambda: (_ for _ in ()).throw(RuntimeError(in_a_fork(there.all))))
    assert "NotAvailableError: a forked child" in said, said


LOADING = """
import base64, pickle, rlmemory as rlm
try:
    pickle.loads(base64.b64decode({dumped!r}))
except rlm.NotAvailableError as error:
    print(error)
"""


@needs_device
@pytest.mark.parametrize("what", ["memory", "array"])
def test_a_pickle_of_the_device_is_an_error_where_there_is_none(what):
    value = filled("cuda") if what == "memory" else rlm.to_device(np.ones(3))
    dumped = base64.b64encode(pickle.dumps(value))
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_ENABLE_CUDASIM"}
    environment |= {"PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}
    assert "device='cuda:0'" in python(LOADING.format(dumped=dumped), env=environment)


def test_a_pickle_that_names_no_device_is_of_the_cpu():
    state = filled("cpu").__getstate__()
    del state["_device"]
    loaded = object.__new__(rlm.ReplayMemory)
    loaded.__setstate__(state)
    assert loaded.device == "cpu"
    assert loaded.all().id.tolist() == list(range(3, 12))


MAKING = """
import pickle, sys, rlmemory as rlm
memory = rlm.ReplayMemory(rlm.NumericSpec(()), rlm.NumericSpec(()), 4)
assert memory.device == "cpu"
assert rlm.to_host({"a": (1.0, None)}) == {"a": (1.0, None)}
assert "numba.cuda" not in sys.modules
"""


def test_memories_on_the_cpu_do_not_load_cuda():
    python(MAKING)


@needs_device
@pytest.mark.parametrize("dtype", ["longdouble", "clongdouble"])
def test_numbers_that_no_device_knows_are_refused_when_the_memory_is_made(dtype):
    with pytest.raises(rlm.SpecError, match=r"next_observation|observation.*no GPU knows.*float64"):
        rlm.ReplayMemory(Spec((3,), dtype), Spec(()), 7, device="cuda")
