"""The replay memory: a ring of experiences in one block of bytes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import DTypeLike

from .accept import at_least, one_source
from .arena import Arena
from .devices import Placed
from .episodes import Episodic
from .reading import Reading
from .specs import NumericSpec, spec_from_space
from .statistics import summarise
from .writing import Writing

if TYPE_CHECKING:
    import gymnasium


class ReplayMemory(Writing, Reading, Episodic, Placed):
    """A ring-buffer replay memory with several observation and action channels.

    Parameters
    ----------
    observation, action : NumericSpec, tuple or dict of them
        What the channels look like. What comes out has the arrangement of what went in.
    capacity : int, default 10_000
        Experiences that are kept; then each new one takes the place of the oldest.
    reward : dtype-like or NumericSpec, default "float64"
        A spec with a shape makes the reward a vector.
    extra : dict of NumericSpec, optional
        The user's own fields (log-probabilities, RNN states, costs): stored, sampled and saved like the rest.
    device : {"cpu", "cuda", "cuda:N"}, default "cpu"
        Where the bytes are. "cuda" is the thread's current device when the memory is made. On a GPU results are
        `DeviceArray`, and arrays of any library that are there are stored without passing through the host.
    path : path-like, optional
        Keep the bytes in this file instead of RAM: room for more than the RAM, not a checkpoint. It begins empty.
        Such a memory cannot be pickled or copied; a forked child may read it.
    mode : {"x", "w", "r+"}, default "x"
        "x" makes the file, at its full size, and refuses an existing one; "w" replaces one; "r+" uses the space of
        one that has the right size.
    seed : int, SeedSequence or Generator, optional
        Of the memory's own generator. Same seed and same calls: same batches, whatever global seeds are set.

    Raises
    ------
    SpecError
        When the channels are not specs.
    ValueError
        For a capacity below 1.
    OSError
        When the file cannot be made.
    NotAvailableError
        For a `device` without a driver or without that device, and for a `path` on one.
    MemoryError
        When there is no room for the capacity; of a GPU it says how much was asked for and how much is free.

    See Also
    --------
    ReplayMemory.from_env : from the spaces of a Gymnasium environment.

    Notes
    -----
    The MATLAB counterpart is ``rlReplayMemory(obsInfo, actInfo, maxLength)``; ``matlab_compat`` has it under that
    name and in MATLAB's shapes.

    An experience has an *id*, its running number since the memory was made, and lies in the slot
    ``id % capacity``; it is live while ``next_id - len(memory) <= id < next_id``. Every public call holds the memory's
    own lock, so threads see whole calls.

    Examples
    --------
    >>> import numpy as np, rlmemory as rlm
    >>> memory = rlm.ReplayMemory(rlm.NumericSpec((3,)), rlm.NumericSpec((), "int64"), 1000, seed=0)
    >>> for step in range(5):
    ...     _ = memory.append(np.full(3, step), step, reward=1.0, next_observation=np.full(3, step + 1),
    ...                       terminated=step == 4)
    >>> len(memory), memory.sample(32).observation.shape
    (5, (32, 3))
    >>> memory.all().action
    array([0, 1, 2, 3, 4])
    """

    @classmethod
    def from_env(
        cls,
        env: gymnasium.Env[Any, Any] | gymnasium.vector.VectorEnv[Any, Any, Any],
        capacity: int = 10_000,
        *,
        reward: DTypeLike | NumericSpec = "float32",
        float_dtype: DTypeLike | None = None,
        **keywords: Any,
    ) -> Self:
        """A memory for an environment, from its spaces.

        Parameters
        ----------
        env : gymnasium.Env or gymnasium.vector.VectorEnv
            Of a vector environment, the spaces of one of its environments are taken; with more than one of them,
            `append` and `extend` ask which `source` an experience comes from.
        capacity : int, default 10_000
        reward : dtype-like or NumericSpec, default "float32"
        float_dtype : dtype-like, optional
            Store float channels in this dtype instead of the spaces' own.
        **keywords
            As in the constructor.

        Returns
        -------
        ReplayMemory

        Raises
        ------
        SpecError
            For a space that has no spec; see `spec_from_space`.
        """
        observation = getattr(env, "single_observation_space", env.observation_space)
        action = getattr(env, "single_action_space", env.action_space)
        memory = cls(
            spec_from_space(observation, float_dtype),
            spec_from_space(action, float_dtype),
            capacity,
            reward=reward,
            **keywords,
        )
        memory._serve(int(getattr(env, "num_envs", 1) or 1))
        return memory

    # ---- what it is ---------------------------------------------------------------------------------------------

    @property
    def capacity(self) -> int:
        """Experiences that fit."""
        return self._capacity

    @property
    def next_id(self) -> int:
        """The id that the next experience will get: how many have ever been stored."""
        return self._next_id

    @property
    def ids(self) -> range:
        """The live ids, oldest first."""
        with self._lock:
            return range(self._oldest, self._next_id)

    @property
    def nbytes(self) -> int:
        """Bytes of the arena, full or not."""
        return self._arena.nbytes

    @property
    def observation_spec(self) -> Any:
        """The spec, tuple or dict of specs of the observation."""
        return self._groups[0].pack(self._groups[0].specs)

    @property
    def action_spec(self) -> Any:
        """The spec, tuple or dict of specs of the action."""
        return self._groups[1].pack(self._groups[1].specs)

    @property
    def reward_spec(self) -> NumericSpec:
        """The spec of the reward."""
        return self._groups[2].specs[0]

    @property
    def extra_spec(self) -> Mapping[str, NumericSpec]:
        """The specs of the user's own fields, by name."""
        spec: Mapping[str, NumericSpec] = self._groups[4].pack(self._groups[4].specs)
        return spec

    def __len__(self) -> int:
        return self._length

    def __repr__(self) -> str:
        where = f", path={str(self._arena.path)!r}" if self._arena.path else ""
        where = f", {self._device}" if self._device != "cpu" else where
        return (
            f"<{type(self).__name__} {self._length:,} of {self._capacity:,} experiences, "
            f"{self.nbytes / 2**20:.1f} MiB{where}>"
        )

    # ---- housekeeping -------------------------------------------------------------------------------------------

    def resize(self, capacity: int) -> None:
        """Change how many experiences are kept; the newest stay, with their ids.

        Parameters
        ----------
        capacity : int
            From 1 up.

        Raises
        ------
        ValueError
            For a capacity below 1. The memory is unchanged then.

        Notes
        -----
        Needs room for both sizes while it copies. The file of a `path` memory is replaced. MATLAB: ``resize``.
        """
        size = at_least("capacity", capacity, 1)
        with self._lock:
            self._check_writable()
            if size == self._capacity:
                return
            path = self._arena.path
            new_path = None if path is None else path.with_name(path.name + ".resize")
            arena = self._new_arena(size, new_path, "w")
            # Everything is made beside the memory, which changes in one step: an interrupt leaves the old or the new.
            aside = object.__new__(type(self))
            aside.__dict__.update(self.__dict__)
            aside._moved_to(arena, size, min(self._length, size))
            if isinstance(arena, Arena) and path is not None and new_path is not None:
                Path(new_path).replace(path)
                arena.path = path
            self.__dict__.update(aside.__dict__)

    def clear(self) -> None:
        """Forget every experience; ids go on counting, so that an old id is never taken for a new one.

        Notes
        -----
        MATLAB: ``reset``.
        """
        with self._lock:
            self._check_writable()
            self._length = 0
            self._edits += 1
            self._timeline.forget()

    def end_episode(self, source: int | None = None) -> None:
        """Say that what follows does not continue what came before, without an end having been stored.

        Parameters
        ----------
        source : int, optional
            For this source only; default: for all.

        Notes
        -----
        For a rollout that was abandoned: the next experience then begins an episode (``Batch.is_first``).
        """
        which = one_source(source)
        with self._lock:
            if self._watches_ends:
                self._sync()
                tails = self._timeline.tails(self._next_id)
                running = tails[self._is_done[tails % self._capacity] == 0]
                mine = running if which is None else running[self._source[running % self._capacity] == which]
                self._episode_ended(mine[mine >= self._oldest])
            self._timeline.cut(self._next_id, which, self._oldest)
            self._edits += 1

    # ---- in files -----------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], *, tag: str | None = None) -> None:
        """Write everything that makes the next batch the same; `rlmemory.load` reads it.

        Parameters
        ----------
        path : path-like
            A folder, which is made if need be: each save is a generation ``gen-000042`` in it, and two are kept. Or,
            when it ends in ``.npz``, one file, which is replaced.
        tag : str, optional
            A name for this checkpoint. Two generations are kept of each tag, and two without one.

        Raises
        ------
        OSError
            When it cannot be written. What was there before is still there then.
        NotAvailableError
            For a subclass, a generator that is not NumPy's, and channels whose keys are not strings.

        See Also
        --------
        rlmemory.load : the memory again.
        rlmemory.checkpoints : what is in a folder.

        Notes
        -----
        **Whole or not at all.** A generation is written under another name, every file of it and the folder are brought
        to the disk (fsync), and then it is renamed; a ``.npz`` file likewise. A process that is killed leaves the old
        state or the new one. `load` checks the CRC-32 of each file, and takes the generation before when the newest is
        damaged.

        **Only what is new is written**, into a folder. Rows lie in files of a 64th of the capacity (or 1 MiB of rows
        where that is more). A file of the generation before is compared, and if it holds the same bytes, the new one is
        a hard link to it: so damage to such a file later is damage to both, and the next save writes it again. What
        `set`, `update_priorities` and `resize` changed is written. A ``.npz`` file is written whole.

        **What is kept:** rows with their ids and sources, capacity, cursor, where episodes were ended, specs, options,
        priorities and their largest, the importance exponent's progress, the generator's state. **What is not:**
        functions (give them to `load`), a ``path``, iterators of `epoch` and `chunks`, and that the newest episode
        was still running. Threads wait while a memory is saved; of two processes that save into one folder, one waits.

        A memory on a GPU is copied to the host to be saved. MATLAB: ``save``, which writes the file in place.

        Examples
        --------
        >>> import tempfile, rlmemory as rlm
        >>> memory = rlm.ReplayMemory(rlm.NumericSpec(()), rlm.NumericSpec(()), 100)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     memory.save(folder, tag="empty")
        ...     [(one.path.name, one.tag) for one in rlm.checkpoints(folder)]
        [('gen-000001', 'empty')]
        """
        from .files.checkpoint import save

        save(self, path, tag)

    def state_dict(self) -> dict[str, Any]:
        """Everything that `save` keeps, for those who checkpoint with another library.

        Returns
        -------
        dict
            Of numbers, strings, lists, dicts of them, and under ``columns`` the rows, oldest first, as fresh arrays.

        Raises
        ------
        NotAvailableError
            As in `save`.

        Notes
        -----
        Needs room for a copy of the rows. MATLAB has no counterpart.
        """
        from .files.statedict import state_dict

        return state_dict(self)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Become the memory that `state_dict` was called on.

        Parameters
        ----------
        state : mapping
            From `state_dict` of a memory of the same class, specs and capacity. Functions stay those that this memory
            was made with.

        Raises
        ------
        CheckpointError
            When it is the state of another kind of memory; it names the field. The memory is unchanged then.
        NotAvailableError
            For a state of a newer version of the package.

        Notes
        -----
        Also for a memory with a ``path``. An episode that was running is closed as cut, as by `rlmemory.load`. MATLAB
        has no counterpart.
        """
        from .files.statedict import load_state_dict

        load_state_dict(self, state)

    def statistics(self) -> dict[str, Any]:
        """Counts, and the range, mean and spread of every channel.

        Returns
        -------
        dict
            ``length``, ``capacity``, ``next_id``, ``nbytes``; ``terminated`` and ``truncated`` (how many);
            ``sources`` (experiences by source); ``channels``: for each channel its ``min``, ``max``, ``mean``, ``std``
            (over all entries; None when there are none, or for min and max of complex numbers) and ``nan``, how many
            entries are NaN and left out of the rest.

        Notes
        -----
        Reads every byte once, on the host. Means are taken in float64.
        """
        with self._lock:
            runs = self._spans(self._oldest, self._next_id)
            named = {name: view for (name, _), view in zip(self._named, self._views, strict=True)}
            return {
                "length": self._length,
                "capacity": self._capacity,
                "next_id": self._next_id,
                "nbytes": self.nbytes,
                **summarise(named, self._is_done, self._plain_sources(self._source), runs),
            }
