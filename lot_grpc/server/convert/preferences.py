"""Preferences."""

from __future__ import annotations

from lot_grpc.domain.preference import Preference
from lot_grpc.pb.lot.v1 import preference_pb2 as pb
from lot_grpc.server.convert.values import struct_from_json, time_to_pb


def preference_to_pb(preference: Preference) -> pb.Preference:
    """A stored preference."""
    return pb.Preference(
        key=preference.key,
        value=struct_from_json({"value": preference.value}).fields["value"],
        category=preference.category,
        namespace=preference.namespace,
        etag=preference.etag,
        create_time=time_to_pb(preference.create_time),
        update_time=time_to_pb(preference.update_time),
        revision=preference.revision,
    )
