"""Notices: remarks of an RPC on a request that it carried out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lot_grpc.domain.match_probability import LeftOut
from lot_grpc.domain.origin import HELD_BACK, Review
from lot_grpc.domain.passages import MOST_PASSAGES
from lot_grpc.lexical.conflicts import Contradiction
from lot_grpc.pb.lot.v1 import outcome_pb2 as pb
from lot_grpc.services.memories.drafts import Conflict
from lot_grpc.services.recall.recall import Answer

_WINDOWS = (
    "longer than the 8 windows read of a text: it is stored whole, but the rest does not affect "
    "similarity; put what matters first, or split it"
)
_PASSAGES = (
    f"longer than the {MOST_PASSAGES} passages read of a content: it is stored whole and found by "
    "all of its words, but the rest does not affect similarity; split it into several memories"
)


def text_notices(field: str, *, truncated: bool, message: str = _WINDOWS) -> list[pb.Notice]:
    """Notice that the model did not read all of a stored text."""
    if not truncated:
        return []
    return [pb.Notice(code=pb.NOTICE_CODE_TEXT_TRUNCATED, field=field, message=message)]


def passage_notices(*, truncated: bool) -> list[pb.Notice]:
    """Notice that not all of a memory's content was read."""
    return text_notices("memory.content", truncated=truncated, message=_PASSAGES)


def unchanged_notices(resource_kind: str, fields: Iterable[str], message: str) -> list[pb.Notice]:
    """Notice of the stored fields that stayed unchanged although other values were given."""
    return [
        pb.Notice(
            code=pb.NOTICE_CODE_FIELDS_UNCHANGED, field=f"{resource_kind}.{name}", message=message
        )
        for name in fields
    ]


def merged_notices(resource_kind: str, id: str, similarity: float | None) -> list[pb.Notice]:
    """Notice that a save was merged by meaning, with what and how similar; None: it was not."""
    if similarity is None:
        return []
    return [
        pb.Notice(
            code=pb.NOTICE_CODE_MERGED,
            field=resource_kind,
            message=f"similarity {similarity:.3f} to {resource_kind} {id}: nothing was stored, "
            "this save counted as a success of it. Use dedupe NONE or EXACT to store both",
        )
    ]


def held_back_notices(
    resource_kind: str, review: Review | None, *, created: bool
) -> list[pb.Notice]:
    """Notice that a repeated save met what is held back by its review."""
    if created or review is None or review.state not in HELD_BACK:
        return []
    return [
        pb.Notice(
            code=pb.NOTICE_CODE_HELD_BACK,
            field=f"{resource_kind}.review",
            message=f"this is already stored and {review.state} by its review, so no recall shows "
            "it; if it is right, approve it with ReviewRecords",
        )
    ]


def conflict_notices(conflicts: Sequence[Conflict]) -> list[pb.Notice]:
    """Notice that a saved memory seems to contradict others, with what each says instead."""
    if not conflicts:
        return []
    said = "; ".join(f"{one.memory_id} ({_against(one.contradiction)})" for one in conflicts)
    return [
        pb.Notice(
            code=pb.NOTICE_CODE_CONFLICTS_WITH,
            field="memory.content",
            message=f"seems to contradict {said}. All are kept: set supersedes if this one "
            "replaces it, valid_until of the other if that was true until then, or delete what is "
            "wrong",
        )
    ]


def _against(found: Contradiction) -> str:
    ours, theirs = (repr(text) if text else "nothing" for text in (found.ours, found.theirs))
    return f"{theirs} there, {ours} here"


def query_notices(answer: Answer[Any]) -> list[pb.Notice]:
    """Notices of the parts of a query that were ignored."""
    notices = unread_notices("query", truncated=answer.truncated, wordless=answer.wordless)
    if answer.unreached:
        notices.append(
            pb.Notice(
                code=pb.NOTICE_CODE_RERANK_INCOMPLETE,
                field="rerank",
                message=f"the cross-encoder had no time for {answer.unreached} of the candidates; "
                "they keep their place. Retry, or use a shorter query",
            )
        )
    return [*notices, *nothing_fits_notices(answer.left_out, found=bool(answer.hits))]


_QUERY_TRUNCATED = (
    "longer than is read of a query (8 windows of the model, and 512 distinct terms): the rest "
    "was ignored; use fewer words"
)
_QUERY_WORDLESS = "has no word, number or symbol to search for; use words"


def unread_notices(
    field: str,
    *,
    truncated: bool,
    wordless: bool,
    messages: tuple[str, str] = (_QUERY_TRUNCATED, _QUERY_WORDLESS),
) -> list[pb.Notice]:
    """Notices that a search text was not read in full, or has no words."""
    cases = (
        (truncated, pb.NOTICE_CODE_QUERY_TRUNCATED),
        (wordless, pb.NOTICE_CODE_QUERY_NOT_SEARCHABLE),
    )
    return [
        pb.Notice(code=code, field=field, message=message)
        for (holds, code), message in zip(cases, messages, strict=True)
        if holds
    ]


def left_out_notices(left_out: Mapping[str, int]) -> list[pb.Notice]:
    """Notice of how many of the nearest were omitted as unlikely to help, by response field."""
    counts = [f"{name}: {count}" for name, count in left_out.items() if count]
    if not counts:
        return []
    return [
        pb.Notice(
            code=pb.NOTICE_CODE_UNLIKELY_OMITTED,
            field="min_similarity",
            message=f"omitted as unlikely to help: {', '.join(counts)}; set min_similarity to 0 to "
            "include them",
        )
    ]


def nothing_fits_notices(left_out: LeftOut, *, found: bool) -> list[pb.Notice]:
    """Notice that everything was below ``min_match``; ``found``: something was not."""
    if found or not left_out.count:
        return []
    return [
        pb.Notice(
            code=pb.NOTICE_CODE_NOTHING_FITS,
            field="min_match",
            message=f"nothing fits: all of the {left_out.count} nearest are below min_match; the "
            f"highest match_probability is {left_out.best:.2g}. Proceed without, or lower "
            "min_match",
        )
    ]
