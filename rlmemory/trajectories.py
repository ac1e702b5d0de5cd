"""Trajectories in nested data: a batch of steps cut apart, and padded or with offsets."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .cuts import Cuts, Question, find_cuts
from .device_runs import mask_of, padded
from .errors import ShapeError, StructureError
from .nested import Nested, NestedKey, Path, check_mapping, find, lent_mapping, mapped, named, path_of, put, shown
from .padding import check_padding, fill_of, warn_of_much_padding
from .placing import common_device, uploaded, working_on
from .rawbytes import move_runs, width_of

Ints = NDArray[np.int64]


def split_trajectories(
    data: Mapping[str, Any],
    *,
    prefix: NestedKey | None = None,
    trajectory_key: NestedKey | None = None,
    done_key: NestedKey | list[NestedKey] | None = None,
    as_nested: bool = False,
    batch_dims: int | None = None,
    on_repeated_ids: str = "split",
    max_length: int | None = None,
    padding_value: Any = 0,
    start_key: NestedKey | None = None,
) -> Any:
    """Cut a batch of steps into its trajectories, one a row, padded to the longest.

    Parameters
    ----------
    data : mapping
        Nested mappings of arrays ``[*batch, *feature]`` in the order of time: batch is ``[N]``, ``[B, T]`` or longer,
        and its last axis is time (``[T, B]`` data: swap these axes first). Any dtype but object; lists are read as
        arrays. Keys are strings.
    prefix : str or tuple of str, optional
        Branch of the ids ``traj_ids`` and of ``mask``. Default: ``collector`` if there is such a branch, else none.
    trajectory_key : str or tuple of str, optional
        Where the ids are, instead of ``(prefix, "traj_ids")``; the mask goes beside them.
    done_key : str, tuple of str, or list of them, optional
        Ends, read if there are no ids: a step that is not 0 is the last of its trajectory. A tuple is one nested key,
        the keys of a list are or-ed. Each is looked for under ``next``, then at root. Default ``done``, or
        ``terminated`` and ``truncated`` together where that is missing.
    as_nested : bool, default False
        Return what `ragged_trajectories` does; then nothing is padded.
    batch_dims : int, optional
        How many axes the batch has. Default: those of the ids, or those of the ends without exactly one last axis of 1
        (an array with one axis keeps it).
    on_repeated_ids : {"split", "raise"}, default "split"
        What to do with an id that comes back after another one, or in another row: a trajectory of its own, or an
        error.
    max_length : int, optional
        Cut longer trajectories into segments of at most this many steps; the segments of one have equal ids.
    padding_value : scalar or mapping, default 0
        What stands after the ends. A scalar is for leaves of numbers other than ids (flags stay False, strings empty);
        a nested mapping names leaves, with a scalar or an array of their feature's shape each. Must be representable.
    start_key : str or tuple of str, optional
        Where to write a bool flag, True at the first step of a trajectory (not of a later segment). Only other flags
        are replaced.

    Returns
    -------
    dict
        The same nesting with arrays ``[K, T, *feature]`` of the same dtypes: K trajectories in the order of their first
        steps, T steps in the longest. In addition ``mask``, bool ``[K, T]``, True at real steps (an entry of this name
        is replaced), and, unless there were ids, int64 ids ``[K, T]`` that count from 0. Always fresh, contiguous
        memory; the input stays as it is. Without any step K and T are 0.

    Raises
    ------
    MissingKeyError
        When neither ids nor ends are found. It is a KeyError.
    ShapeError
        When a leaf does not begin with the batch shape. It is a ValueError.
    DataTypeError
        For object arrays, for ends that are no flags, and when only some leaves are on a GPU. It is a TypeError.
    ValueNotRepresentableError
        When a padding does not fit a leaf's dtype.

    Warns
    -----
    UserWarning
        When padding exceeds four times the data.

    See Also
    --------
    ragged_trajectories : No padding.
    unsplit_trajectories : The way back.
    ReplayMemory.trajectories : The same for what is in a memory.

    Notes
    -----
    One pass finds the cuts, and each leaf is then copied once; padding of 0 is memory that is never touched.

    Of arrays on a GPU (all leaves, on one of them, of any library) the result is a dict of `DeviceArray`. Only the ids
    or ends are copied to the host; a kernel moves each leaf and writes its padding.

    TorchRL's function of this name differs: it groups by id over the whole batch, where an id that comes back gives an
    error or unsplit data; it lets trajectories with ids run on over the end of a row, and joins rows of
    ``[B1, B2, T]`` data; it returns the input's own memory when all rows are full, 3-D data unchanged; it fails
    without steps, and with `terminated` and `truncated` but no `done`. Here a row's end always cuts, and made ids have
    the batch shape. The input has no batch size that could be read, which is why there is `batch_dims`.

    Examples
    --------
    >>> import numpy as np
    >>> import rlmemory as rlm
    >>> done = np.array([False, False, True, False, False])
    >>> data = {"obs": np.arange(1, 6), "next": {"done": done}}
    >>> parts = rlm.split_trajectories(data)
    >>> parts["obs"]
    array([[1, 2, 3],
           [4, 5, 0]])
    >>> parts["mask"]
    array([[ True,  True,  True],
           [ True,  True, False]])
    >>> rlm.unsplit_trajectories(parts)["obs"]
    array([1, 2, 3, 4, 5])
    """
    check_mapping("data", data)
    question = Question(prefix, trajectory_key, done_key, batch_dims, on_repeated_ids, max_length)
    number = common_device(named(data))
    with nullcontext() if number is None else working_on(number):
        cuts, flat = _flat(data, question, start_key, number, pads=not as_nested)
        if as_nested:
            return _ragged(cuts, flat)
        check_padding(padding_value, flat)
        longest = int(cuts.length.max(initial=0))
        widths: list[int] = []
        mapped(flat, lambda _, leaf: widths.append(width_of(leaf)))
        warn_of_much_padding(cuts.steps, cuts.length.size, longest, sum(widths))
        fills = mapped(flat, lambda path, leaf: fill_of(path, leaf, padding_value, cuts.ids))
        if number is None:
            return _padded(cuts, flat, fills, longest)
        result = mapped(flat, lambda path, leaf: padded(leaf, cuts.length, longest, find(fills, path)))
        put(result, _mask_path(cuts), mask_of(cuts.length, longest, number))
        return result


def _padded(cuts: Cuts, flat: Nested, fills: Nested, longest: int) -> Nested:
    """The rows of all leaves, and the mask, on the host."""
    mask = np.arange(longest) < cuts.length[:, None]
    table = np.stack((cuts.start, cuts.length, np.arange(len(mask)) * longest), axis=1)

    def pad(path: Path, leaf: NDArray[Any]) -> NDArray[Any]:
        fill = find(fills, path)
        rows = np.zeros((*mask.shape, *leaf.shape[1:]), leaf.dtype)
        move_runs(leaf, table, rows)
        if fill is not None:
            rows[~mask] = fill
        return rows

    result = mapped(flat, pad)
    put(result, _mask_path(cuts), mask)
    return result


def ragged_trajectories(
    data: Mapping[str, Any],
    *,
    prefix: NestedKey | None = None,
    trajectory_key: NestedKey | None = None,
    done_key: NestedKey | list[NestedKey] | None = None,
    batch_dims: int | None = None,
    on_repeated_ids: str = "split",
    max_length: int | None = None,
    start_key: NestedKey | None = None,
) -> tuple[Nested, Ints]:
    """Cut a batch of steps into its trajectories, one behind the other, without padding.

    Parameters
    ----------
    data : mapping
        As for `split_trajectories`.
    prefix, trajectory_key, done_key, batch_dims, on_repeated_ids, max_length, start_key
        As for `split_trajectories`.

    Returns
    -------
    flat : dict
        The same nesting with arrays ``[N, *feature]`` of all N steps; fresh memory. Without ids in the input there are
        made ones as well; there is no mask.
    offsets : int64 array (K + 1,)
        Trajectory k is ``leaf[offsets[k]:offsets[k + 1]]``. On the host, also where the leaves are on a GPU.

    Notes
    -----
    TorchRL returns nested tensors for ``as_nested=True``. Errors are those of `split_trajectories`.

    Examples
    --------
    >>> import rlmemory as rlm
    >>> flat, offsets = rlm.ragged_trajectories({"obs": [1.0, 2.0, 3.0], "traj_ids": [7, 7, 8]})
    >>> offsets
    array([0, 2, 3])
    >>> flat["obs"][offsets[0] : offsets[1]]
    array([1., 2.])
    """
    check_mapping("data", data)
    question = Question(prefix, trajectory_key, done_key, batch_dims, on_repeated_ids, max_length)
    number = common_device(named(data))
    with nullcontext() if number is None else working_on(number):
        return _ragged(*_flat(data, question, start_key, number, pads=False))


def _flat(
    data: Mapping[str, Any], question: Question, start_key: NestedKey | None, number: int | None, *, pads: bool
) -> tuple[Cuts, Nested]:
    """The cuts, and all leaves with one axis for the batch: views where that can be, with ids and start flags."""
    if number is not None:
        data = lent_mapping(data, number)
    cuts = find_cuts(data, question)
    lead, replaced = len(cuts.batch), _mask_path(cuts) if pads else None

    def made(array: NDArray[Any]) -> Any:
        return array if number is None else uploaded(array, number)

    def flatten(path: Path, leaf: NDArray[Any]) -> Any:
        if path == replaced:
            return made(np.zeros(cuts.steps, np.bool_))
        if leaf.shape[:lead] != cuts.batch:
            raise ShapeError(
                f"{shown(path)}: expected the batch shape {cuts.batch} first, got {leaf.shape}; the batch shape is "
                "that of the ids or ends, and batch_dims says how many axes it has"
            )
        return leaf.reshape((cuts.steps, *leaf.shape[lead:]))

    flat = mapped(data, flatten)
    if not cuts.given:
        put(flat, cuts.ids, made(np.repeat(cuts.run, cuts.length)))
    if start_key is not None:
        path = path_of("start_key", start_key)
        there = find(flat, path)
        if path in (cuts.ids, _mask_path(cuts)) or (there is not None and getattr(there, "dtype", None) != np.bool_):
            raise StructureError(f"start_key: {shown(path)} holds something else; flags would replace it")
        first = np.zeros(cuts.steps, np.bool_)
        first[cuts.start[cuts.begins]] = True
        put(flat, path, made(first))
    return cuts, flat


def _ragged(cuts: Cuts, flat: Nested) -> tuple[Nested, Ints]:
    return mapped(flat, lambda _, leaf: leaf.copy()), np.append(cuts.start, cuts.steps)


def _mask_path(cuts: Cuts) -> Path:
    return (*cuts.ids[:-1], "mask")
