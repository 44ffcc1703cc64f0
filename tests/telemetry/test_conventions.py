"""The conventions of OpenTelemetry name every call that they have a name for."""

from __future__ import annotations

from lot_grpc.telemetry.conventions import MEMORY_OPERATIONS, full_method
from tests.server.service import SERVICES

_BY_VERB = {
    "Create": "create_memory",
    "Save": "upsert_memory",
    "Put": "upsert_memory",
    "Update": "update_memory",
    "Delete": "delete_memory",
    "Recall": "search_memory",
    "Search": "search_memory",
    "Find": "search_memory",
}


def test_every_operation_is_an_rpc_of_the_contract() -> None:
    rpcs = {f"{name}.{rpc.name}" for name, one in SERVICES.items() for rpc in one.methods}
    assert set(MEMORY_OPERATIONS) <= rpcs


def test_an_rpc_whose_verb_is_that_of_an_operation_has_it() -> None:
    for name, service in SERVICES.items():
        for rpc in service.methods:
            for verb, operation in _BY_VERB.items():
                if rpc.name.removeprefix("Batch").startswith(verb) and "Policy" not in rpc.name:
                    assert MEMORY_OPERATIONS[f"{name}.{rpc.name}"] == operation, rpc.name


def test_the_full_name_of_a_method_is_that_of_the_contract() -> None:
    for name, service in SERVICES.items():
        for rpc in service.methods:
            assert full_method(f"{name}.{rpc.name}") == f"{service.full_name}/{rpc.name}"
