"""What is mirrored of MATLAB's replay memories, what differs and what is missing, as data.

``python -m matlab_compat.coverage`` prints it as Markdown; ``docs/matlab.md`` is that text.
"""

from __future__ import annotations

from typing import NamedTuple

#: The states of a row. An extension is ours: MATLAB has no such name.
STATES = ("mirrored", "differs", "extension", "missing")


class Option(NamedTuple):
    """A name-value option of a function, or a property of a class."""

    name: str
    state: str
    note: str = ""


class Row(NamedTuple):
    """One name of the family."""

    name: str
    group: str
    since: str
    state: str
    note: str
    differences: tuple[int, ...] = ()
    options: tuple[Option, ...] = ()


DIFFERENCES: dict[int, str] = {
    1: "Indices start at 0: elements of struct arrays, cells and spec arrays. `finddim` and goalConditionInfo count "
    "from 1, as in MATLAB.",
    2: "Python cannot see how many outputs a caller wants: `mb, mask = sample(buffer, 32, nargout=2)`.",
    3: "The number of axes follows the mode and the spec, never the data: trailing ones stay, so one experience in "
    "batch mode is (2, 1, 1) where MATLAB shows 2×1. The display shows the same sizes.",
    4: "`x = e[0]` is a view of the struct array, where MATLAB copies: changing `x` changes `e`. Assigning to a field "
    "copies, as in MATLAB; `copy.deepcopy(e[0])` copies an element.",
    5: "A value that would change in the DataType of its channel (300 in uint8, 0.5 in int32) is an error, where casts "
    "in MATLAB saturate and round. A double may round to a single.",
    6: "`Mask` has the layout of Reward, 1×B×T; MATLAB documents a vector of SequenceLength.",
    7: "`struct(Name=cell)` makes one element that holds the cell; MATLAB makes one element of each entry.",
    8: "A field of several elements cannot be read at once: `[x.Reward for x in e]` for MATLAB's `[e.Reward]`.",
    9: "`dlarray` has no automatic differentiation. `ReturnDlarray` gives arrays without labels, and two labelled "
    "arrays need the same labels to be combined.",
    10: "`gpuArray` and `ReturnGpuArray` need a CUDA device and raise an error without one; a host array is never "
    "given instead. What they give is for CuPy, PyTorch or JAX to take: there is no arithmetic on it. The buffers "
    "themselves are on the host: `ReturnGpuArray` copies to the GPU, and `append`, `validateExperience`, `save` and "
    "`updatePriorities` copy from it. `gather` takes structs and cells too; `unbatch`, `toBatchFirst` and "
    "`splitTrajectories` need what it brings back.",
    11: "`sample` draws from a generator of the buffer's own, set by the option Seed, not from a global one.",
    12: "An option given twice is an error. `mode` is another name of ConcatenateMode, as MATLAB's page uses both.",
    13: "A 1-D array of n numbers stands for a channel [n 1] or [1 n], a number for [1 1].",
    14: "IsDone must be 0, 1 or 2 (or a logical); what is stored comes back as a double.",
    15: "`sample` of an empty buffer is an error; MATLAB's page does not say what happens.",
    16: "A spec array is a list: `[spec1, spec2]` or `hcat(spec1, spec2)`. Dimension is a tuple.",
    17: "NStepHorizon sums r₁ + γ·r₂ + γ²·r₃ …: the first reward is not discounted. MATLAB's page appears to begin the "
    "sum with γ.",
    18: "Priorities change by `updatePriorities` only, an extension, and each call is one step of "
    "ImportanceSamplingExponent; in MATLAB the agents do this.",
    19: "A new experience gets the largest priority of those stored, 1 when there is none or it is 0. One of priority "
    "0 is not drawn, and when all are 0 `sample` is an error. MATLAB's pages do not say.",
    20: "What `generateHindsightExperiences` gave stands alone where it is appended, whole, in slices or changed: no "
    "sequence, sum over steps or later trajectory joins it. Copies (`hcat`, lists, `copy.deepcopy`, pickle) and "
    "`merge` do not keep this. MATLAB's page does not say.",
    21: "RewardFcn, IsDoneFcn and GoalConditionInfo are given when the memory is made and cannot be set later.",
    22: "IsDoneFcn gives true or false: a generated experience has IsDone 1 or 0, or stays 2 where the new goal is not "
    "met.",
    23: '`save` takes values, `save("x.mat", experience=e)`, and `load` gives a struct: Python passes no names. What '
    "is loaded has the sizes of the file, which keeps no trailing ones.",
    24: "Objects of MATLAB classes (a saved buffer or agent) cannot be loaded: the error says how to get at what is in "
    "them.",
}

_OUTPUT = (
    Option("ReturnDlarray", "mirrored", "false"),
    Option("ReturnGpuArray", "differs", "false; true copies to a CUDA device and needs one"),
)
_SPEC = (
    Option("Name", "mirrored", '""'),
    Option("Description", "mirrored", '""'),
    Option("DataType", "mirrored", '"double"; "single", the integer classes, "logical"; read-only'),
)
_LENGTHS = (
    Option("MaxLength", "mirrored", "10000, read-only"),
    Option("Length", "mirrored", "read-only"),
    Option("RewardDataType", "extension", '"double" or "single"'),
    Option("Seed", "extension", "an int, for batches that repeat"),
)
_PRIORITIES = (
    Option("PriorityExponent", "mirrored", "1"),
    Option("InitialImportanceSamplingExponent", "mirrored", "0.5"),
    Option("NumAnnealingSteps", "mirrored", "1e6"),
    Option("ImportanceSamplingExponent", "mirrored", "the current value, read-only"),
)
_GOALS = (
    Option("RewardFcn", "differs", "(obs, action, nextObs), cells; gives a scalar; read-only"),
    Option("IsDoneFcn", "differs", "the same; gives true or false; read-only"),
    Option("GoalConditionInfo", "differs", "counts from 1, in a matrix column by column; read-only"),
    Option("Strategy", "mirrored", '"final", "episode" or "future"'),
    Option("NumGoalSamples", "mirrored", "4"),
)
_MEMORY, _FUNCTION, _SPECS, _DATA, _ARRAYS, _FILES = (
    "Memories", "Functions", "Specs", "Structs and cells", "Arrays", "Files",
)  # fmt: skip

ROWS: tuple[Row, ...] = (
    Row("rlReplayMemory", _MEMORY, "R2022a", "mirrored", "`(obsInfo, actInfo[, maxLength])`; `buffer.memory` is the "
        "rlmemory object, on the host", (11,), _LENGTHS),
    Row("rlPrioritizedReplayMemory", _MEMORY, "R2022b", "differs", "`(obsInfo, actInfo[, maxLength])`", (11, 18, 19), (
            *_PRIORITIES, *_LENGTHS,
        )),
    Row("rlHindsightReplayMemory", _MEMORY, "R2023a", "differs",
        "`(obsInfo, actInfo, rewardFcn, isDoneFcn, goalConditionInfo[, maxLength])`", (1, 11, 20, 21, 22), (
            *_GOALS, *_LENGTHS,
        )),
    Row("rlHindsightPrioritizedReplayMemory", _MEMORY, "R2023a", "differs", "the same, drawn by priority",
        (1, 11, 18, 19, 20, 21, 22), (*_GOALS, *_PRIORITIES, *_LENGTHS)),
    Row("append", _FUNCTION, "R2022a", "differs", "`(buffer, experience[, dataSourceID])`; structs, dicts, lists of "
        "them, and what `scipy.io.loadmat` gives", (5, 13, 14, 20)),
    Row("sample", _FUNCTION, "R2022a", "differs", "`(buffer, batchSize)`; uniform or by priority, with "
        "replacement", (2, 6, 11, 15, 17, 19), (
            Option("SequenceLength", "mirrored", "1, with priorities only 1; ends with the episode, zeros after it"),
            Option("NStepHorizon", "differs", "1; must be 1 when SequenceLength is above 1"),
            Option("DiscountFactor", "mirrored", "0.99; used when NStepHorizon is above 1"),
            Option("DataSourceID", "mirrored", "-1, all sources"),
            *_OUTPUT,
            Option("nargout", "extension", "1; 2 adds Mask, 3 importance weights, 4 ids"),
        )),
    Row("allExperiences", _FUNCTION, "R2022b", "differs", "`(buffer)`; oldest first", (3, 12), (
            Option("ConcatenateMode", "mirrored", '"none", "batch" or "sequence"; also as `mode`'),
            *_OUTPUT,
        )),
    Row("validateExperience", _FUNCTION, "R2023a", "mirrored", "`(buffer, experience)`; the checks of append",
        (13, 14)),
    Row("resize", _FUNCTION, "R2022b", "mirrored", "`(buffer, maxLength)`; in place, the newest stay"),
    Row("reset", _FUNCTION, "R2022b", "mirrored", "`(buffer)`"),
    Row("getObservationInfo", _FUNCTION, "R2022a", "mirrored", "`(buffer)`", (16,)),
    Row("getActionInfo", _FUNCTION, "R2022a", "mirrored", "`(buffer)`", (16,)),
    Row("generateHindsightExperiences", _FUNCTION, "R2023a", "differs", "`(buffer, trajectoryLength)`; from the newest "
        "experiences, not stored", (20, 22)),
    Row("unbatch", _FUNCTION, "", "extension", "`(batch)`: a batch or a sequence as single experiences"),
    Row("merge", _FUNCTION, "", "extension", "`(buffer, other)`: everything of another buffer, with its sources"),
    Row("toBatchFirst", _FUNCTION, "", "extension", "`(batch)`: the arrays as Python's networks want them, (B, …)"),
    Row("updatePriorities", _FUNCTION, "", "extension", "`(buffer, ids, priorities)`", (18, 19)),
    Row("splitTrajectories", _FUNCTION, "", "extension", "`(experience)`: trajectories side by side, "
        "D×B×T, with zeros after their ends", (), (Option("nargout", "extension", "1; 2 adds Mask, 1×B×T"),)),
    Row("rlNumericSpec", _SPECS, "R2019a", "differs", "`(dimension)`", (16,), (
            Option("LowerLimit", "mirrored", "-Inf"), Option("UpperLimit", "mirrored", "Inf"),
            Option("Dimension", "mirrored", "read-only"), *_SPEC,
        )),
    Row("rlFiniteSetSpec", _SPECS, "R2019a", "differs", "`(elements)`", (16,), (
            Option("Elements", "mirrored", "read-only"), Option("Dimension", "mirrored", "read-only"), *_SPEC,
        )),
    Row("hcat", _SPECS, "", "mirrored", "MATLAB's `[a b]`, for specs and for structs", (16,)),
    Row("struct", _DATA, "", "differs", "`s.X = v`, `e[i].X = v` grows the array", (1, 4, 7, 8)),
    Row("Cell", _DATA, "", "mirrored", "MATLAB's `{a, b}`; a list, a tuple or an object array does as well", (1,)),
    Row("fieldnames", _DATA, "", "mirrored", "`(s)`"),
    Row("isfield", _DATA, "", "mirrored", "`(s, name)`"),
    Row("numel", _DATA, "", "mirrored", "`(x)`"),
    Row("dlarray", _ARRAYS, "R2019b", "differs", "`(X[, fmt])`; NumPy's functions, `__array__`, `__dlpack__`", (9,)),
    Row("dims", _ARRAYS, "R2019b", "mirrored", "`(x)`"),
    Row("finddim", _ARRAYS, "R2019b", "mirrored", "`(x, label)`; counts from 1", (1,)),
    Row("stripdims", _ARRAYS, "R2019b", "mirrored", "`(x)`"),
    Row("extractdata", _ARRAYS, "R2019b", "mirrored", "`(x)`"),
    Row("gpuArray", _ARRAYS, "", "differs", "`(X)`; an array or a dlarray", (10,)),
    Row("gather", _ARRAYS, "", "mirrored", "`(X, …)`; of any library, and, an extension, within structs and cells; "
        "what is on the host stays as it is"),
    Row("save", _FILES, "", "differs", '`("x.mat"[, "-v7.3"], name=value)`; "-v6", "-v7" (default), "-v7.3"', (23,)),
    Row("load", _FILES, "", "differs", "`(filename[, variables])` gives a struct; versions 6, 7 and 7.3", (23, 24)),
    Row("saveExperiences", _FILES, "", "extension", "`(filename, buffer)`: what `allExperiences` gives, as a .mat file",
        (), (
            Option("ConcatenateMode", "extension", '"batch"; "sequence" or "none"'),
            Option("Version", "extension", '"v7"; "v6", or "v7.3" from 2 GiB up'),
            Option("Variable", "extension", '"experience"'),
        )),
    Row("loadExperiences", _FILES, "", "extension", "`(filename, buffer[, dataSourceID])`: any of these forms, or a "
        "folder of loggedData*.mat, with the sizes of the specs"),
)  # fmt: skip


def rendered() -> str:
    """Everything above as Markdown."""
    lines = [
        "# MATLAB coverage",
        "",
        "What `matlab_compat` mirrors of MATLAB's replay memories. Rendered from `matlab_compat/coverage.py` by",
        "`python -m matlab_compat.coverage`; the functions' own help has shapes and examples, [porting.md](porting.md)",
        "the two languages side by side.",
        "",
        "* **mirrored**: works as MATLAB documents it. **differs**: works, with the numbered differences below.",
        "* **extension**: not in MATLAB. **missing**: not here yet.",
    ]
    for group in dict.fromkeys(row.group for row in ROWS):
        lines += ["", f"## {group}", "", "| name | since | state | notes | differences |", "|---|---|---|---|---|"]
        for row in ROWS:
            if row.group == group:
                numbers = ", ".join(f"[{number}](#differences)" for number in row.differences)
                lines.append(f"| `{row.name}` | {row.since} | {row.state} | {row.note} | {numbers} |")
                lines += [f"| · `{o.name}` | | {o.state} | {o.note} | |" for o in row.options]
    lines += ["", "## Differences", "", "Each has a test of its number in `tests/matlab/test_differences.py`.", ""]
    return "\n".join(lines + [f"{number}. {text}" for number, text in DIFFERENCES.items()]) + "\n"


if __name__ == "__main__":
    print(rendered(), end="")
