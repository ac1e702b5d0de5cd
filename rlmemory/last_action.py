"""The previous action beside an observation, on nested dicts of arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .accept import as_numeric, cast_exactly, on_a_gpu
from .action_specs import specs_of
from .borrowed import is_on_device
from .errors import MissingKeyError, ShapeError, SpecError, StructureError
from .fill import Fill, Shape
from .keys import Key, Path, as_path, as_paths, check_pairs, find, leaves, need, put, shown
from .shift import as_flags, shift
from .specs import NumericSpec
from .starts import batch_shape, find_starts

_ENDS = (("done",), ("terminated",), ("truncated",))


class LastAction:
    """Puts the action of the step before beside the observation.

    Parameters
    ----------
    in_keys : key or list of keys, optional
        Where the actions are. A key is a string or, for an entry of an inner dict, a tuple of strings. Default:
        ``["action"]``.
    out_keys : key or list of keys, optional
        Where the last actions go. Default: each of `in_keys` with its last part replaced by ``last_action``.
    default : "zeros", "nan", number or array_like, keyword-only, default "zeros"
        What stands there when no action was taken yet. An array is broadcast to the action's shape, or has one row
        for each environment.
    reset_key : key, optional
        Where `reset` finds a mask of the environments that were reset. Default: the one entry named ``_reset``, if any.
    action_spec : NumericSpec, Gymnasium space, (nested) dict or sequence of them, optional
        The action of one environment, without batch axes. With several `in_keys`, a dict that has them or a sequence in
        their order. Default: learned from the first data that holds an action.

    Attributes
    ----------
    in_keys, out_keys : list of keys

    Raises
    ------
    SpecError, DataTypeError, ShapeError, ValueNotRepresentableError
        For keys that do not pair up or would write to one place twice, and for a default that the action cannot hold:
        here if `action_spec` is given, else when the first action is seen.

    See Also
    --------
    shift_actions : on plain arrays.
    rlmemory.wrappers.LastActionObservation : for a Gymnasium environment.

    Notes
    -----
    The counterpart of TorchRL's transform of this name, on dicts (any Mapping) of arrays. Here, lists and NumPy arrays
    may be the default, what cannot work is said early, and `forward` works on stored trajectories. Entries of batched
    environments begin with the batch axes. These are read off the reset mask or off ``done``, ``terminated`` or
    ``truncated`` of the data, less one last axis of 1 when there are several (so (3, 1) and (3,) both say 3, and (1,)
    says a batch of one); else they are those seen last.
    Input is never changed; entries that are not written are shared with the result. Actions, ends and masks are needed
    on the host: those on a GPU are an error, and `shift_actions` takes them. Not thread-safe while it learns.

    Examples
    --------
    >>> import numpy as np, rlmemory as rlm
    >>> last = rlm.LastAction(action_spec=rlm.NumericSpec((2,), "float32"))
    >>> data = last.reset({"observation": np.zeros(3)})
    >>> data["last_action"]
    array([0., 0.], dtype=float32)
    >>> data["action"] = np.array([0.5, -1.0], np.float32)
    >>> last.step(data, {"observation": np.ones(3)})["last_action"]
    array([ 0.5, -1. ], dtype=float32)
    """

    def __init__(
        self,
        in_keys: Key | list[Key] | None = None,
        out_keys: Key | list[Key] | None = None,
        *,
        default: Any = "zeros",
        reset_key: Key | None = None,
        action_spec: Any = None,
    ) -> None:
        sources: list[Path] = [("action",)] if in_keys is None else as_paths("in_keys", in_keys)
        targets: list[Path] = [(*path[:-1], "last_action") for path in sources]
        targets = targets if out_keys is None else as_paths("out_keys", out_keys)
        check_pairs(sources, targets)
        self._pairs = list(zip(sources, targets, strict=True))
        self._fill = Fill("default", default)
        self._reset = None if reset_key is None else as_path("reset_key", reset_key)
        self._known: dict[Path, NumericSpec] = {}
        self._whole: set[Path] = set()  # learned with whatever batch axes there are
        self._lead: Shape = ()
        if action_spec is not None:
            for path, spec in zip(sources, specs_of(sources, action_spec), strict=True):
                self._fill.check(spec.shape, spec.dtype)
                self._known[path] = NumericSpec(spec.shape, spec.dtype)

    @property
    def in_keys(self) -> list[Key]:
        """Where the actions are."""
        return [shown(source) for source, _ in self._pairs]

    @property
    def out_keys(self) -> list[Key]:
        """Where the last actions go."""
        return [shown(target) for _, target in self._pairs]

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.in_keys} -> {self.out_keys}, default={self._fill.word or self._fill.values})"
        )

    def reset(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """After a reset: the default, where it took place.

        Parameters
        ----------
        data : mapping
            What the environments gave. With a mask at `reset_key` (bool, the batch shape, maybe with more axes, over
            which any() is taken), only the masked environments get the default; the others keep what `data` has
            under the out key, or get the default as well when it has nothing there.

        Returns
        -------
        dict
            `data` and the out keys, which hold fresh arrays of the action's shape and dtype.

        Raises
        ------
        MissingKeyError
            When neither `action_spec` nor any data has told the action's shape and dtype.
        SpecError
            When there are several ``_reset`` entries and no `reset_key`, or the out key holds what is no action.
        """
        mask = self._mask(data)
        lead = self._batch(data) if mask is None else self._rows_of(mask)
        result = dict(data)
        for source, target in self._pairs:
            result = put(result, target, self._after_reset(data, source, target, mask, lead))
        return result

    def step(self, data: Mapping[str, Any], next_data: Mapping[str, Any]) -> dict[str, Any]:
        """After a step: the action, beside the next observation.

        Parameters
        ----------
        data : mapping
            With the actions.
        next_data : mapping
            What the step gave.

        Returns
        -------
        dict
            `next_data` and the out keys, which hold copies of the actions.

        Raises
        ------
        MissingKeyError
            When `data` lacks an action.
        SpecError
            When `next_data` holds something under an out key already.
        ShapeError, ValueNotRepresentableError
            When an action is not what was seen before.
        """
        result = dict(next_data)
        for source, target in self._pairs:
            action = self._action(data, source, self._batch(data) or self._batch(next_data))
            if find(next_data, target) is not None:
                raise _hides(target)
            result = put(result, target, np.array(action))
        return result

    def forward(
        self, data: Mapping[str, Any], *, done_key: Key | list[Key] | None = None, trajectory_key: Key | None = None
    ) -> dict[str, Any]:
        """On stored trajectories: the previous action of every step.

        Parameters
        ----------
        data : mapping
            Arrays [T, ...] or [..., T, ...]; each row along T begins a trajectory.
        done_key : key or list of keys, optional
            Which entries end a trajectory, looked for under ``next``, then at root; several are or-ed. Default:
            ``done``, or ``terminated`` and ``truncated`` together.
        trajectory_key : key, optional
            Numbers of trajectories, a new one where the number changes. Default, when no `done_key` is given:
            ``("collector", "traj_ids")`` or ``traj_ids`` if there.

        Returns
        -------
        dict
            `data` with the previous action under the out keys, the default at the starts, and, if it has a dict
            ``next``, the action under ``("next", *out_key)``. Fresh arrays.

        Raises
        ------
        MissingKeyError
            When there is no action, or nothing that says where trajectories end.
        SpecError
            When an out key holds what is no action.
        DataTypeError
            For arrays on a GPU; `shift_actions` takes them.
        """
        starts = find_starts(data, done_key, trajectory_key)
        result = dict(data)
        for source, target in self._pairs:
            action = self._action(data, source, starts.shape, remember=False)
            if action.shape[: starts.ndim] != starts.shape:
                raise ShapeError(f"{shown(source)!r}: expected the batch shape {starts.shape}, got {action.shape}")
            self._check_entry(find(data, target), target, action.shape, action.dtype)
            result = put(result, target, shift(action, starts, self._fill))
            if isinstance(data.get("next"), Mapping):
                self._check_entry(find(data["next"], target), target, action.shape, action.dtype)
                result = put(result, ("next", *target), np.array(action))
        return result

    def transform_observation_spec(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """The spec of what comes out.

        Parameters
        ----------
        spec : mapping
            The observation's specs by name; dicts in dicts are allowed.

        Returns
        -------
        dict
            `spec` and the out keys: specs of the action's shape and dtype, without limits, so that any default is
            within them.

        Raises
        ------
        SpecError
            When an out key would hide an observation.
        MissingKeyError
            When the action's spec is not known yet.
        """
        if not isinstance(spec, Mapping) or hasattr(spec, "spaces"):
            raise SpecError(
                f"observation: expected a dict of specs, got {type(spec).__name__} (spec_from_space makes one "
                "of a Dict space; rlmemory.wrappers.LastActionObservation changes spaces)"
            )
        result = dict(spec)
        for source, target in self._pairs:
            if find(spec, target) is not None:
                raise _hides(target)
            result = put(result, target, self._spec(source))
        return result

    # ---- what is known of the action --------------------------------------------------------------------------------

    def _spec(self, source: Path) -> NumericSpec:
        if source not in self._known:
            raise MissingKeyError(
                f"the shape and dtype of the action {shown(source)!r} are not known yet: give action_spec, or first a "
                "step or stored data that holds one"
            )
        return self._known[source]

    def _action(self, data: Mapping[str, Any], source: Path, lead: Shape, *, remember: bool = True) -> NDArray[Any]:
        """The action in `data`, of the dtype that is known; learns it from the first one."""
        entry = need(data, source, "action")
        if isinstance(entry, Mapping):
            raise StructureError(f"{shown(source)!r} is a dict; name its arrays as in_keys, each by a tuple")
        action = as_numeric(str(shown(source)), entry)
        if source not in self._known:
            shape = action.shape[len(lead) :] if action.shape[: len(lead)] == lead else action.shape
            self._fill.check(shape, action.dtype)
            self._known[source] = NumericSpec(shape, action.dtype)
            self._whole |= set() if lead else {source}
        spec = self._known[source]
        count = action.ndim - len(spec.shape)
        if count < 0 or action.shape[count:] != spec.shape:
            raise ShapeError(
                f"{shown(source)!r}: expected an action of shape {spec.shape} after the batch axes {lead}, "
                f"got {action.shape}"
            )
        if remember:
            self._lead = action.shape[:count]
        return action if action.dtype == spec.dtype else cast_exactly(str(shown(source)), action, spec.dtype)

    def _rows_of(self, mask: NDArray[np.bool_]) -> Shape:
        """The batch shape that a reset mask tells: it may have more axes than the batch."""
        known = self._lead and mask.shape[: len(self._lead)] == self._lead
        return self._lead if known else batch_shape(mask)

    def _batch(self, data: Mapping[str, Any]) -> Shape:
        """The batch shape that the data's own ends tell; () when it has none."""
        for path in _ENDS:
            entry = find(data, path)
            if entry is not None and not isinstance(entry, Mapping):
                return batch_shape(_on_host(path, entry))
        return ()

    # ---- resets -----------------------------------------------------------------------------------------------------

    def _mask(self, data: Mapping[str, Any]) -> NDArray[np.bool_] | None:
        if self._reset is not None:
            entry = find(data, self._reset)
            return None if entry is None else as_flags(str(shown(self._reset)), entry)
        found = [path for path in leaves(data) if path[-1] == "_reset"]
        if len(found) > 1:
            raise SpecError(f"reset_key: the data has the reset masks {[shown(p) for p in found]}; say which one")
        return as_flags("_reset", find(data, found[0])) if found else None

    def _after_reset(
        self, data: Mapping[str, Any], source: Path, target: Path, mask: NDArray[np.bool_] | None, lead: Shape
    ) -> NDArray[Any]:
        if source not in self._known and find(data, source) is not None:
            self._action(data, source, lead)
        spec = self._spec(source)
        before = find(data, target)
        lead = lead or (self._lead if mask is None else ())
        if source in self._whole and spec.shape[: len(lead)] == lead:
            lead = ()
        if before is not None and not isinstance(before, Mapping):
            before = _on_host(target, before)
            lead = before.shape[: max(0, before.ndim - len(spec.shape))]
        self._check_entry(before, target, lead + spec.shape, spec.dtype)
        fresh = self._fill.rows(lead, spec.shape, spec.dtype)
        if mask is None or before is None:
            return fresh
        rows = _rows(mask, lead, fresh.shape, target)
        return np.where(rows.reshape(rows.shape + (1,) * (fresh.ndim - rows.ndim)), fresh, before)

    def _check_entry(self, entry: Any, target: Path, shape: Shape, dtype: np.dtype[Any]) -> None:
        if entry is not None and (isinstance(entry, Mapping) or _on_host(target, entry).dtype != dtype):
            raise _hides(target)
        if entry is not None and np.shape(entry) != shape:
            raise _hides(target)


def _rows(mask: NDArray[np.bool_], lead: Shape, shape: Shape, target: Path) -> NDArray[np.bool_]:
    """The mask with any() taken over the axes that are not the batch's."""
    count = len(lead)
    if not lead:  # one environment, or an action that was learned with its batch axes
        own = batch_shape(mask)
        count = len(own) if own == shape[: len(own)] else 0
    if mask.shape[:count] != shape[:count] or (count == 0 and mask.size != 1):
        raise ShapeError(f"the reset mask of shape {mask.shape} does not fit {shown(target)!r} of shape {shape}")
    return np.asarray(mask.any(axis=tuple(range(count, mask.ndim))))


def _on_host(path: Path, entry: Any) -> NDArray[Any]:
    if is_on_device(entry):
        raise on_a_gpu(str(shown(path)), entry)
    return np.asarray(entry)


def _hides(target: Path) -> SpecError:
    return SpecError(f"out_keys: the data has an entry {shown(target)!r} already, which would be hidden; give out_keys")
