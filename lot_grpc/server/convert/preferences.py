"""Preferences, their history and drafts."""

from __future__ import annotations

from lot_grpc.domain.preference import Preference, PreferenceRevision
from lot_grpc.pb.lot.v1 import preference_pb2 as pb
from lot_grpc.server.convert.values import time_to_pb, value_from_json, value_from_pb
from lot_grpc.services.memories.preferences import PreferenceDraft


def preference_to_pb(preference: Preference) -> pb.Preference:
    """A stored preference."""
    return pb.Preference(
        key=preference.key,
        value=value_from_json(preference.value),
        category=preference.category,
        namespace=preference.namespace,
        etag=preference.etag,
        create_time=time_to_pb(preference.create_time),
        update_time=time_to_pb(preference.update_time),
        revision=preference.revision,
    )


def revision_to_pb(revision: PreferenceRevision) -> pb.PreferenceRevision:
    """A former value."""
    return pb.PreferenceRevision(
        revision=revision.revision,
        value=value_from_json(revision.value),
        category=revision.category,
        update_time=time_to_pb(revision.update_time),
    )


def draft_from_pb(request: pb.PutPreferenceRequest) -> PreferenceDraft:
    """What is to be put."""
    return PreferenceDraft(
        key=request.key,
        value=value_from_pb(request.value, "value"),
        category=request.category,
        etag=request.etag,
        request_id=request.request_id,
    )
