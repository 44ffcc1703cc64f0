"""Selecting actions, and remembering what was selected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lot_grpc.domain.action_values import LearningState
from lot_grpc.domain.errors import SelectionNotFoundError
from lot_grpc.domain.ids import new_id
from lot_grpc.domain.request_hash import request_hash
from lot_grpc.domain.selection import EXPLORATION_RATE, SelectionPolicy, choose, generator
from lot_grpc.kernel.create import Creation, Kind
from lot_grpc.ports import Record
from lot_grpc.services.learning.action_values import ActionValues
from lot_grpc.services.records.actions import (
    Selection,
    selection_from_record,
    selection_point,
    selection_record,
)
from lot_grpc.services.records.collections import SELECTIONS
from lot_grpc.services.runtime import Runtime

_KIND = Kind("SelectAction", SELECTIONS, "", "selection_id", selection_point)


@dataclass(frozen=True, slots=True)
class SelectionDraft:
    """What to select from, and how. ``actions``: parameters by name, returned to the caller."""

    state: LearningState
    actions: Mapping[str, Mapping[str, Any]]
    policy: SelectionPolicy = SelectionPolicy.EPSILON_GREEDY
    seed: int | None = None
    exploration_rate: float = EXPLORATION_RATE
    request_id: str = ""

    def hash(self) -> str:
        """Equal for equal requests."""
        return request_hash(self)


class Selections:
    """The selections of all namespaces. Each can be rewarded any number of times."""

    def __init__(self, runtime: Runtime, values: ActionValues) -> None:
        self._store = runtime.store
        self._time = runtime.time
        self._create = runtime.create
        self._values = values

    async def select(self, namespace: str, draft: SelectionDraft) -> Selection:
        """Select an action and remember it; a repeated request gets the same selection.

        Raises RequestIdReusedError.
        """
        names = list(draft.actions)
        known = await self._values.of(namespace, draft.state, names)
        numbers = generator(draft.seed)
        choice = choose(names, known, draft.policy, numbers, draft.exploration_rate)

        def make(id: str) -> Record:
            selection = Selection(
                namespace,
                id,
                draft.state,
                choice.action,
                draft.policy,
                choice.explored,
                tuple(known[name] for name in names if name in known),
                self._time.now(),
            )
            return selection_record(selection)

        creation = Creation(
            namespace=namespace,
            id=new_id("s"),
            request_id=draft.request_id,
            content_hash=draft.hash(),
        )
        record, _ = await self._create.insert(_KIND, creation, make)
        return selection_from_record(record)

    async def get(self, namespace: str, selection_id: str) -> Selection:
        """One selection of the last 30 days. Raises SelectionNotFoundError."""
        point = selection_point(namespace, selection_id)
        found = await self._store.get(SELECTIONS, namespace, [point])
        if point not in found:
            raise SelectionNotFoundError(namespace, selection_id)
        return selection_from_record(found[point])

    async def get_many(self, namespace: str, selection_ids: list[str]) -> dict[str, Selection]:
        """Selections by id. Raises SelectionNotFoundError for the first that is not known."""
        points = {selection_point(namespace, one): one for one in selection_ids}
        found = await self._store.get(SELECTIONS, namespace, list(points))
        for point, selection_id in points.items():
            if point not in found:
                raise SelectionNotFoundError(namespace, selection_id)
        return {points[point]: selection_from_record(record) for point, record in found.items()}
