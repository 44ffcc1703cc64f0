"""How a command is made of a function, and fields of a message become texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer import Option

from lot_grpc.cli.fields import field_label, field_text
from lot_grpc.cli.options import command
from lot_grpc.cli.tables import print_message, screen
from lot_grpc.pb.lot.v1 import outcome_pb2
from lot_grpc.pb.lot.v1 import pattern_pb2 as pb


@dataclass(frozen=True)
class Group:
    name: Annotated[str, Option("--name")] = "group"
    count: Annotated[int, Option("--count", min=0)] = 1


@dataclass(frozen=True)
class Wider(Group):
    more: Annotated[bool, Option("--more")] = False


def made(function):
    app = typer.Typer(add_completion=False)
    app.command()(command(function))
    return app


def test_a_group_of_options_stands_for_its_fields(runner):
    seen = []

    def one(group: Wider, *, last: str = Option("", "--last")) -> None:
        seen.append((group, last))

    assert runner.invoke(made(one), []).exit_code == 0
    given = ["--name", "x", "--count", "3", "--more", "--last", "y"]
    assert runner.invoke(made(one), given).exit_code == 0
    assert seen == [(Wider(), ""), (Wider("x", 3, more=True), "y")]
    assert runner.invoke(made(one), ["--count", "-1"]).exit_code == 2


def test_a_command_may_give_a_group_other_defaults(runner):
    seen = []

    def one(*, group: Group = Group(count=600)) -> None:
        seen.append(group)

    assert runner.invoke(made(one), ["--name", "x"]).exit_code == 0
    assert seen == [Group("x", 600)]
    assert "600" in runner.invoke(made(one), ["--help"]).stdout


@pytest.mark.parametrize(("result", "code"), [(None, 0), (True, 0), (False, 1)])
def test_only_false_is_a_failure(runner, result: bool | None, code):
    def one() -> bool | None:
        return result

    assert runner.invoke(made(one), []).exit_code == code


def test_a_field_is_shown_by_its_kind():
    one = pb.Pattern(
        pattern_id="p-1",
        complexity=outcome_pb2.COMPLEXITY_HIGH,
        tags=["a", "b"],
        source_episode_ids=["e-1", "e-2"],
        labels={"b": "2", "a": "1"},
        confidence=0.0,
        pinned=True,
    )
    one.outcomes.usage_count = 1234
    one.metadata.update({"port": 8080})
    one.ttl.FromSeconds(90)
    texts = {
        "complexity": "high",
        "tags": "a, b",
        "source_episode_ids": "e-1\ne-2",
        "labels": "a=1\nb=2",
        "confidence": "0",
        "pinned": "yes",
        "metadata": '{"port":8080}',
        "ttl": "1 min 30 s",
        "create_time": "",
        "title": "",
        "code_kind": "",
        "outcomes.usage_count": "1,234",
    }
    assert {name: field_text(one, name) for name in texts} == texts
    assert field_text(one, "confidence", ".2f") == "0.00"
    assert field_text(pb.Pattern(), "confidence", ".2f") == ""
    assert field_label(one, "pattern_id") == "id"
    assert field_label(one, "source_episode_ids") == "source episodes"


def test_a_message_is_shown_without_what_is_not_set(capsys):
    one = pb.Pattern(pattern_id="p-1", task="do it", etag="x", title="t")
    print_message(screen(), one, first=("title",), hidden=("etag",), task="done", extra="more")
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows == [["title", "t"], ["id", "p-1"], ["task", "done"], ["extra", "more"]]
