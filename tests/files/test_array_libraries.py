"""Results in other array libraries: torch and JAX, where they are installed.

What is handed over shares its memory with the result, and so must not change at the next sample.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import matlab_compat as mc
import rlmemory as rlm

FIELDS = ("observation", "action", "reward", "next_observation", "terminated", "discount", "weight", "id")


def filled(dtype: str = "float32") -> rlm.ReplayMemory:
    memory = rlm.ReplayMemory(rlm.NumericSpec((4,), dtype), rlm.NumericSpec((), "int64"), 500, reward=dtype, seed=1)
    numbers = np.arange(500)
    observation = np.repeat(numbers[:, None], 4, 1).astype(dtype)
    memory.extend(
        observation,
        numbers,
        reward=numbers.astype(dtype),
        next_observation=observation + np.array(1, dtype),
        terminated=numbers % 50 == 49,
    )
    return memory


def address(array: Any) -> int:
    return int(np.asarray(array).__array_interface__["data"][0])


def labelled() -> Any:
    """A dlarray whose memory is in the order of its dimensions, as other libraries want it.

    It also begins on a 64-byte boundary: JAX copies what does not. NumPy aligns to 16, so the first that fits is taken.
    """
    tried = []
    for _ in range(10_000):
        tried.append(mc.dlarray(np.arange(12, dtype=np.float32).reshape(3, 4), "CB"))
        if address(tried[-1]) % 64 == 0:
            return tried[-1]
    raise AssertionError("no array began on a 64-byte boundary")


# ---- with NumPy alone -----------------------------------------------------------------------------------------------


def test_a_dlarray_speaks_both_protocols_without_a_copy():
    x = labelled()
    assert address(np.asarray(x)) == address(x._data)
    assert address(np.from_dlpack(x)) == address(x._data)
    assert x.__dlpack_device__() == (1, 0)
    with pytest.raises(ValueError, match="copy"):
        np.asarray(x, dtype=np.float64, copy=False)
    assert address(np.array(x, copy=True)) != address(x._data)


def test_the_next_sample_leaves_earlier_results_alone():
    memory = filled()
    kept = [memory.sample(32) for _ in range(5)]
    copies = [[np.copy(getattr(batch, name)) for name in FIELDS] for batch in kept]
    memory.sample(32)
    memory.append(np.zeros(4, np.float32), 0, reward=0.0, next_observation=np.zeros(4, np.float32), terminated=False)
    for batch, copied in zip(kept, copies, strict=True):
        for name, array in zip(FIELDS, copied, strict=True):
            np.testing.assert_array_equal(getattr(batch, name), array)
    assert len({address(batch.reward) for batch in kept}) == 5


def test_blocks_start_where_other_libraries_can_use_them():
    batch = filled().sample(33)
    for name in FIELDS:
        assert address(getattr(batch, name)) % 64 == 0


# ---- torch ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.mark.parametrize("way", ["from_numpy", "as_tensor", "from_dlpack"])
def test_torch_shares_every_field(torch, way):
    batch = filled().sample(32)
    for name in FIELDS:
        array = getattr(batch, name)
        tensor = getattr(torch, way)(array)
        assert tensor.data_ptr() == address(array), name
        assert tensor.numpy().tobytes() == array.tobytes()


def test_a_tensor_does_not_change_at_the_next_sample(torch):
    memory = filled()
    batch = memory.sample(32)
    tensors = {name: torch.from_dlpack(getattr(batch, name)) for name in FIELDS}
    before = {name: tensor.clone() for name, tensor in tensors.items()}
    del batch  # the tensors keep the block
    for _ in range(20):
        memory.sample(32)
    memory.clear()
    for name, tensor in tensors.items():
        assert torch.equal(tensor, before[name]), name


def test_out_does_change_a_tensor_that_shares_its_memory(torch):
    memory = filled()
    batch = memory.sample(32)
    shared, copied = torch.from_numpy(batch.observation), torch.tensor(batch.observation)
    before = shared.clone()
    memory.sample(32, out=batch)
    assert not torch.equal(shared, before), "out= writes into the block that the tensor shares"
    assert torch.equal(copied, before)


def test_torch_takes_a_dlarray(torch):
    x = labelled()
    assert torch.from_dlpack(x).data_ptr() == address(x._data)
    buffer = mc.rlReplayMemory(mc.rlNumericSpec([4, 1]), mc.rlFiniteSetSpec([0, 1]), 10, Seed=0)
    e = mc.struct()
    e.Observation, e.Action, e.NextObservation, e.Reward, e.IsDone = [np.arange(4.0)], [1], [np.ones(4)], 1.0, 0
    mc.append(buffer, e)
    batch = mc.sample(buffer, 3, ReturnDlarray=True)
    observation = batch.Observation[0]
    tensor = torch.from_dlpack(observation)
    assert tensor.data_ptr() == address(observation._data)
    assert tuple(tensor.shape) == observation.shape


def test_a_learning_step_takes_what_a_sample_gives(torch):
    batch = filled().sample(32)
    layer = torch.nn.Linear(4, 1)
    value = layer(torch.from_numpy(batch.observation)).squeeze(1)
    with torch.no_grad():
        after = layer(torch.from_numpy(batch.next_observation)).squeeze(1)
    target = torch.from_numpy(batch.reward) + torch.from_numpy(batch.discount).float() * after
    (torch.from_numpy(batch.weight).float() * (value - target) ** 2).mean().backward()
    assert torch.isfinite(layer.weight.grad).all()


# ---- JAX ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def jax() -> Any:
    return pytest.importorskip("jax")


#: JAX has no 64-bit numbers unless told to, and no bool by this protocol in every version.
SHARED = ("observation", "reward", "next_observation")


def test_jax_shares_float_fields_by_dlpack(jax):
    batch = filled().sample(32)
    for name in SHARED:
        array = getattr(batch, name)
        shared = jax.dlpack.from_dlpack(array)
        assert shared.unsafe_buffer_pointer() == address(array), name
        assert np.asarray(shared).tobytes() == array.tobytes()


def test_a_jax_array_does_not_change_at_the_next_sample(jax):
    memory = filled()
    batch = memory.sample(32)
    arrays = {name: jax.dlpack.from_dlpack(getattr(batch, name)) for name in SHARED}
    before = {name: np.array(array, copy=True) for name, array in arrays.items()}
    del batch
    for _ in range(20):
        memory.sample(32)
    for name, array in arrays.items():
        np.testing.assert_array_equal(np.asarray(array), before[name])


def test_out_does_change_a_jax_array_that_shares_its_memory(jax):
    memory = filled()
    batch = memory.sample(32)
    shared = jax.dlpack.from_dlpack(batch.observation)
    copied = jax.numpy.array(batch.observation, copy=True)
    before = np.array(batch.observation, copy=True)
    jax.block_until_ready(copied)
    memory.sample(32, out=batch)
    assert not np.array_equal(np.asarray(shared), before)
    np.testing.assert_array_equal(np.asarray(copied), before)


def test_jax_takes_a_dlarray_and_a_whole_batch(jax):
    x = labelled()
    assert jax.dlpack.from_dlpack(x).unsafe_buffer_pointer() == address(x._data)
    batch = filled().sample(8)
    leaves, tree = jax.tree.flatten(batch)
    assert type(jax.tree.unflatten(tree, leaves)) is type(batch)
    loss = jax.jit(lambda b: (b.weight * (b.observation.sum(1) - b.reward) ** 2).mean())
    assert np.isfinite(loss(batch))
