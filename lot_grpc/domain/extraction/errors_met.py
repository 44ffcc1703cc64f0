"""The errors that an episode met, and what was done about them.

From these the error solutions of an episode are made: an error that was overcome with the steps
that overcame it, one that was not as unresolved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lot_grpc.domain.extraction.digest import ErrorSeen, Step

MOST_ERRORS: Final = 20
MOST_STEPS: Final = 50


@dataclass(frozen=True, slots=True)
class ErrorMet:
    """An error, the steps that were taken next, and whether they overcame it.

    ``failed_step`` is the step that met it; None if only the end reports it.
    """

    error: ErrorSeen
    failed_step: Step | None
    steps: tuple[Step, ...]
    worked: bool


def errors_met(
    steps: Sequence[Step | None], *, succeeded: bool, ended_by: ErrorSeen | None = None
) -> list[ErrorMet]:
    """The errors of an episode, in order; each attempt at one once.

    An error is overcome once the same event type and tool succeeds again: by the steps in between,
    or by the repetition itself if there are none. If it is never tried again, it is overcome in an
    episode that succeeded, by what was done until the next error or the end. If the same error
    comes back before that, the steps until then did not work. ``ended_by``, the error of an episode
    that FAILED, is not overcome: the steps that did not help are those since it was last met.

    At most ``MOST_ERRORS``, the first ones and that of the end, with ``MOST_STEPS`` steps each.
    None among ``steps`` is a part that was not read: no conclusions are drawn across it.
    """
    met: list[ErrorMet] = []
    for at, step in enumerate(steps):
        if step is not None and step.error is not None:
            one = _attempt(step, step.error, steps[at + 1 :], succeeded=succeeded)
            if one is not None and one not in met:
                met.append(one)
    if ended_by is None:
        return met[:MOST_ERRORS]
    last = next((one for one in reversed(met) if one.error == ended_by and not one.worked), None)
    last = last or ErrorMet(ended_by, None, (), worked=False)
    first = met[:MOST_ERRORS]
    return first if last in first else [*first[: MOST_ERRORS - 1], last]


def _attempt(
    failed: Step, error: ErrorSeen, later: Sequence[Step | None], *, succeeded: bool
) -> ErrorMet | None:
    """The next steps after an error; None if they were not read."""
    between: list[Step] = []
    again = _tried_again(failed, later)
    for step in later:
        if step is None:
            return None
        if step.error == error:
            return ErrorMet(error, failed, tuple(between[:MOST_STEPS]), worked=False)
        if failed.tool and step.error is None and step.name == failed.name:
            steps = between or [step]
            return ErrorMet(error, failed, tuple(steps[:MOST_STEPS]), worked=True)
        if step.error is not None and not again:
            break
        between.append(step)
    worked = succeeded and bool(between)
    return ErrorMet(error, failed, tuple(between[:MOST_STEPS]), worked=worked)


def _tried_again(failed: Step, later: Sequence[Step | None]) -> bool:
    """Whether the step was tried again at all."""
    return bool(failed.tool) and any(
        step is not None and step.name == failed.name for step in later
    )
