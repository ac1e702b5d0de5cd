"""The exceptions a user can meet.

Each also is the built-in exception that the same mistake raises elsewhere in Python, so that code which
catches ``ValueError``, ``TypeError``, ``KeyError`` or ``IndexError`` keeps working.
"""


class ReplayMemoryError(Exception):
    """Base class of everything that rlmemory raises on purpose."""


class SpecError(ReplayMemoryError, ValueError):
    """A spec, or a structure of specs, cannot be made from what was given."""


class ShapeError(ReplayMemoryError, ValueError):
    """An array does not have the shape that its spec asks for."""


class StructureError(ReplayMemoryError, TypeError):
    """Channels are missing, too many, or arranged otherwise than in the spec."""


class ValueNotRepresentableError(ReplayMemoryError, ValueError):
    """A value would change if it were stored in the dtype of its spec."""


class DataTypeError(ReplayMemoryError, TypeError):
    """A kind of data that a numeric array cannot hold: text, objects, complex numbers for a real field."""


class StaleIdError(ReplayMemoryError, IndexError):
    """An id names an experience that was overwritten, or that was never stored."""


class EmptyMemoryError(ReplayMemoryError, ValueError):
    """There are not enough experiences to draw from."""


class ArenaError(ReplayMemoryError, OSError):
    """A file cannot serve as the arena of a memory."""


class CheckpointError(ReplayMemoryError, ValueError):
    """What was saved of a memory is damaged, or does not fit."""


class CheckpointWarning(UserWarning):
    """The newest checkpoint is damaged, and the one before it was taken."""


class FileFormatError(ReplayMemoryError, ValueError):
    """A file is damaged, or does not hold what it should."""


class NotPickleableError(ReplayMemoryError, TypeError):
    """A memory whose arena is a file was pickled or deep-copied."""


class NotAvailableError(ReplayMemoryError, NotImplementedError):
    """An option, back end or device that this version or this machine does not have."""


class MissingKeyError(ReplayMemoryError, KeyError):
    """A nested mapping lacks an entry that is needed."""

    __str__ = Exception.__str__  # KeyError shows the repr, which is hard to read for a sentence


class MatFileError(ReplayMemoryError, ValueError):
    """A .mat file is damaged, or holds something else than what is asked for."""
