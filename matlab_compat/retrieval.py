"""`allExperiences` and `sample`: out of a replay memory. Each is a method of the memories as well."""

from __future__ import annotations

from typing import Any

import rlmemory as rlm

from .buffers import Buffer, checked
from .layout import row
from .options import between, logical, name_value, one_of, whole
from .results import batched, on_demand, output, sequence
from .structs import struct

_BATCH_SIZE = whole(1)


@name_value(
    aliases={"mode": "ConcatenateMode"},
    ConcatenateMode=one_of("none", "batch", "sequence"),
    ReturnDlarray=logical,
    ReturnGpuArray=logical,
)
def allExperiences(
    buffer: Buffer,
    *,
    ConcatenateMode: str = "none",
    ReturnDlarray: bool = False,
    ReturnGpuArray: bool = False,
) -> struct:
    """Everything in a replay memory, oldest first.

    Parameters
    ----------
    buffer : rlReplayMemory
    ConcatenateMode : {"none", "batch", "sequence"}, default "none"
        A struct array of single experiences, one batch, or one sequence. ``mode`` is another name of this option.
    ReturnDlarray : bool, default False
        Whether the fields are dlarrays, without labels.
    ReturnGpuArray : bool, default False
        Whether the arrays are copied to a GPU, as `gpuArray` gives them; with `ReturnDlarray` dlarrays around such. The
        memory itself is on the host. Each field is copied when it is first read, in "none" all fields at once.
        `append`, `validateExperience` and `save` take such structs, `gather` brings them back whole; `unbatch`,
        `toBatchFirst` and `splitTrajectories` need that.

    Returns
    -------
    struct
        With N experiences, a channel of Dimension D and the DataType's dtype:

        * "none": an N-by-1 struct array of Observation, Action, NextObservation, Reward, IsDone; channels of size
          D, scalars otherwise. Elements are made when they are asked for.
        * "batch": one struct of Observation, Action, Reward, NextObservation, IsDone; channels ``D + (N,)``, Reward
          and IsDone ``(1, N)``.
        * "sequence": the same with channels ``D + (1, N)``, Reward and IsDone ``(1, 1, N)``.

        The arrays are a copy of the memory's, seen through views that are neither C- nor F-contiguous where D has
        several sizes: ``np.ascontiguousarray`` makes them so. With `ReturnDlarray` or `ReturnGpuArray` the scalars of
        "none" are 1-by-1 arrays.

    Raises
    ------
    TypeError, ValueError
        For an unknown option, or a value that it does not take.
    rlmemory.NotAvailableError
        For `ReturnGpuArray` without a device; a host array is never given instead.

    Notes
    -----
    MATLAB counterpart: ``allExperiences``. The number of axes follows the mode and the spec, never the data: N = 1
    is ``(2, 1, 1)`` in batch mode. "none" reads the memory at the first element asked for, or before `append`,
    `merge`, `resize` or `reset` next change it: what it gives is always what was there at the call.

    Examples
    --------
    >>> buffer = rlReplayMemory(rlNumericSpec([2, 1]), rlNumericSpec([1, 1]))
    >>> allExperiences(buffer, ConcatenateMode="batch")
    struct with fields:
            Observation: {[2×1×0 double]}
                 Action: {[1×1×0 double]}
                 Reward: [1×0 double]
        NextObservation: {[2×1×0 double]}
                 IsDone: [1×0 double]
    """
    memory = checked("allExperiences", buffer).memory
    out = output(ReturnDlarray, ReturnGpuArray)
    if ConcatenateMode == "none":
        return on_demand(buffer, out)
    if ConcatenateMode == "batch":
        return batched(memory.all(), buffer, 1, out)
    return batched(sequence(memory.all()), buffer, 2, out)


@name_value(
    SequenceLength=whole(1),
    NStepHorizon=whole(1),
    DiscountFactor=between(0.0, 1.0),
    DataSourceID=whole(-1),
    ReturnDlarray=logical,
    ReturnGpuArray=logical,
    nargout=whole(1),
)
def sample(
    buffer: Buffer,
    batchSize: int,
    *,
    SequenceLength: int = 1,
    NStepHorizon: int = 1,
    DiscountFactor: float = 0.99,
    DataSourceID: int = -1,
    ReturnDlarray: bool = False,
    ReturnGpuArray: bool = False,
    nargout: int = 1,
) -> Any:
    """Draw a random mini-batch from a replay memory, with replacement.

    Parameters
    ----------
    buffer : rlReplayMemory or another memory
        Memories with priorities draw by these, others uniformly.
    batchSize : int
        B, how many are drawn.
    SequenceLength : int, default 1
        T, up to how many consecutive experiences of one source each drawn one is followed by; they end with the
        episode, and zeros fill up the rest.
    NStepHorizon : int, default 1
        Up to how many consecutive experiences of one source are folded into one: the first Observation and Action, the
        last NextObservation and IsDone, and the discounted sum of the rewards, the first undiscounted.
        Needs SequenceLength 1.
    DiscountFactor : float, default 0.99
        Used when NStepHorizon is above 1.
    DataSourceID : int, default -1
        Only experiences of this source; -1: of all.
    ReturnDlarray, ReturnGpuArray : bool, default False
        As for `allExperiences`. With `ReturnGpuArray` mask, weights and ids are on the GPU as well; they are never
        dlarrays. The draw is the same, and `updatePriorities` takes the ids as they are.
    nargout : int, default 1
        How many outputs to return.

    Returns
    -------
    experience : struct
        Channels of Dimension D are ``D + (B,)``, Reward and IsDone ``(1, B)``; with SequenceLength above 1
        ``D + (B, T)`` and ``(1, B, T)``. New arrays, seen through views.
    Mask : bool array (1, B) or (1, B, T), for nargout of 2 and more
        True for experiences, False for padding.
    weights : float64 array (1, B), for nargout of 3 and more
        Importance weights; ones from a memory without priorities.
    ids : int64 array of the mask's shape, for nargout of 4
        Running number of each experience since the memory was made (of the first one for NStepHorizon), -1 for
        padding: what `updatePriorities` takes.

    Raises
    ------
    rlmemory.EmptyMemoryError
        When there is nothing to draw from, or all priorities are 0.
    rlmemory.NotAvailableError
        For `ReturnGpuArray` without a device; a host array is never given instead.
    TypeError, ValueError
        For an unknown option, a value that it does not take, SequenceLength and NStepHorizon both above 1, or
        SequenceLength above 1 with priorities.

    Notes
    -----
    MATLAB counterpart: ``sample``. Python cannot see how many outputs the caller wants, so it is said:
    ``mb, mask = sample(buffer, 32, nargout=2)``. Each call draws from the memory's own generator: the option Seed
    of `rlReplayMemory`, not ``np.random.seed``, makes it repeat.

    Examples
    --------
    >>> buffer = rlReplayMemory(rlNumericSpec([2, 1]), rlNumericSpec([1, 1]), Seed=0)
    >>> append(buffer, struct(Observation=[np.zeros(2)], Action=[0], NextObservation=[np.ones(2)], Reward=1, IsDone=0))
    >>> mb, mask = sample(buffer, 32, nargout=2)
    >>> mb.Observation[0].shape, mb.Reward.shape, mask.shape
    ((2, 1, 32), (1, 32), (1, 32))
    """
    memory = checked("sample", buffer).memory
    if type(batchSize) is not int or batchSize < 1:
        batchSize = _BATCH_SIZE("sample: batchSize", batchSize)
    if SequenceLength > 1 and NStepHorizon > 1:
        raise ValueError("sample: NStepHorizon must be 1 when SequenceLength is above 1; choose one of them")
    if SequenceLength > 1 and not buffer._sequences:
        raise ValueError(
            f"sample: {type(buffer).__name__} gives single experiences, so SequenceLength must be 1: as in MATLAB, "
            "recurrent agents, which learn from sequences, have no prioritized memory; rlReplayMemory gives sequences"
        )
    if nargout > 4:
        raise ValueError(f"sample: nargout must be 1 to 4; got {nargout}")
    out = output(ReturnDlarray, ReturnGpuArray)
    source = None if DataSourceID == -1 else DataSourceID
    try:
        batch = memory.sample(
            batchSize, sequence_length=SequenceLength, n_step=NStepHorizon, discount=DiscountFactor, source=source
        )
    except rlm.EmptyMemoryError as error:
        raise _empty(error) from None
    lead = batch.mask.ndim
    experience = batched(batch, buffer, lead, out)
    if nargout == 1:
        return experience
    columns = (batch.mask, batch.weight, batch.id)[: nargout - 1]
    return (experience, *(row(out.move(values)) for values in columns))


def _empty(error: rlm.EmptyMemoryError) -> rlm.EmptyMemoryError:
    """Why there is nothing to draw, with names of this interface where priorities are the reason."""
    reason, word, _ = str(error).partition(" to draw from are 0;")
    return rlm.EmptyMemoryError(f"{reason}{word} updatePriorities sets some") if word else error
