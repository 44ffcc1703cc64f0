"""Whether what is recalled is used and helps, and what learning gains."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from lot_grpc.domain.counting import counted
from lot_grpc.domain.holdout import Arm, Gain, gain
from lot_grpc.domain.ids import HOUR, ResourceRef
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.retrieval import Receipt

DAY: Final = 24 * HOUR
DEFAULT_PERIOD: Final = 7 * DAY


@dataclass(frozen=True, slots=True)
class Period:
    """A time range in microseconds since 1970; ``end`` is exclusive."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class KindAdoption:
    """How often records of a kind were shown, were used, and helped."""

    resource_kind: str
    shown: int
    used: int
    helped: int


@dataclass(frozen=True, slots=True)
class DayAdoption:
    """What was recalled on a day that began at ``start_time``, in UTC."""

    start_time: int
    retrievals: int
    kinds: tuple[KindAdoption, ...]


@dataclass(frozen=True, slots=True)
class Adoption:
    """What was recalled in a period. ``truncated``: only the latest retrievals were read."""

    period: Period
    retrievals: int
    with_outcome: int
    truncated: bool
    kinds: tuple[KindAdoption, ...]
    days: tuple[DayAdoption, ...]


def adoption_text(retrievals: int, with_outcome: int, *, truncated: bool) -> str:
    """How many retrievals there were, as the end of a sentence."""
    latest = "; only the latest are counted" if truncated else ""
    return f"{counted(retrievals, 'retrieval')}, {with_outcome:,} with an outcome{latest}."


@dataclass(frozen=True, slots=True)
class HoldoutArm:
    """The retrievals of one arm, and the values of those with an outcome."""

    retrievals: int
    values: Arm


@dataclass(frozen=True, slots=True)
class HoldoutComparison:
    """Recalls that used what was learned, beside those that were held out."""

    learned: HoldoutArm
    holdout: HoldoutArm

    @property
    def gain(self) -> Gain | None:
        """What learning gains; None while one of the arms has no outcome."""
        return gain(self.learned.values, self.holdout.values)


class _Counts:
    """Counts by kind."""

    def __init__(self) -> None:
        self.retrievals = 0
        self._by_kind: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0])

    def add(self, shown: Iterable[ResourceRef], used: Mapping[ResourceRef, Outcome]) -> None:
        self.retrievals += 1
        for resource in shown:
            outcome = used.get(resource)
            counts = self._by_kind[resource.kind]
            counts[0] += 1
            counts[1] += outcome is not None
            counts[2] += outcome is Outcome.SUCCESS

    def kinds(self) -> tuple[KindAdoption, ...]:
        ranked = sorted(self._by_kind.items(), key=lambda one: (-one[1][0], one[0]))
        return tuple(KindAdoption(kind, *counts) for kind, counts in ranked)


class AdoptionTally:
    """Adds up receipts."""

    def __init__(self) -> None:
        self._all = _Counts()
        self._days: defaultdict[int, _Counts] = defaultdict(_Counts)
        self._with_outcome = 0
        self._arms: dict[bool, HoldoutArm] = {}

    def add(self, receipt: Receipt) -> None:
        """Count one."""
        retrieval, used = receipt.retrieval, receipt.outcome_by_resource
        shown = [one.resource for one in retrieval.items]
        self._all.add(shown, used)
        self._days[retrieval.create_time // DAY * DAY].add(shown, used)
        self._with_outcome += bool(receipt.outcomes)
        held = retrieval.options.holdout
        if held is not None:
            self._arms[held] = _with(self._arms.get(held, _EMPTY), receipt)

    def adoption(self, period: Period, *, truncated: bool) -> Adoption:
        """The counts."""
        days = tuple(
            DayAdoption(day, counts.retrievals, counts.kinds())
            for day, counts in sorted(self._days.items())
        )
        counts = self._all
        return Adoption(
            period, counts.retrievals, self._with_outcome, truncated, counts.kinds(), days
        )

    def comparison(self) -> HoldoutComparison | None:
        """The arms; None if nothing was held out."""
        if not self._arms:
            return None
        return HoldoutComparison(self._arms.get(False, _EMPTY), self._arms.get(True, _EMPTY))


_EMPTY: Final = HoldoutArm(0, Arm())


def _with(arm: HoldoutArm, receipt: Receipt) -> HoldoutArm:
    values = [one.outcome.value_in_rates for one in receipt.outcomes]
    return HoldoutArm(
        arm.retrievals + 1, arm.values.record(fmean(values)) if values else arm.values
    )
