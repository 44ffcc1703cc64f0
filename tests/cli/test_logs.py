from __future__ import annotations

import json
import logging
import random
import warnings
from datetime import datetime, timedelta

import pytest
import structlog

from lot_grpc.logs import MAX_EXCEPTION_TEXT, configure_logging
from tests.secrets import keys


@pytest.fixture
def lines(capsys):
    """Lines written to stderr since, parsed."""
    configure_logging("info", "auto", secrets=["hush-hush", ""])
    return lambda: [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_a_line_is_json_with_the_time_in_utc_when_stderr_is_no_terminal(lines):
    structlog.get_logger().info("call", method="/lot.v1.X/Y", ms=1.5)
    (line,) = lines()
    assert line["message"] == "call"
    assert line["level"] == "info"
    assert (line["method"], line["ms"]) == ("/lot.v1.X/Y", 1.5)
    assert datetime.fromisoformat(line["timestamp"]).utcoffset() == timedelta(0)


def test_console_lines_are_for_reading(capsys):
    configure_logging("info", "console")
    structlog.get_logger().info("call", method="x")
    told = capsys.readouterr().err
    assert "call" in told
    assert "method=x" in told
    assert "{" not in told


def test_libraries_and_warnings_go_the_same_way(lines):
    logging.getLogger("grpc").warning("a %s", "word")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("take care", stacklevel=1)
    first, second = lines()
    assert (first["logger"], first["level"], first["message"]) == ("grpc", "warning", "a word")
    assert "take care" in second["message"]


def test_the_fine_lines_of_libraries_stay_out_even_at_debug(lines):
    configure_logging("debug", "json")
    logging.getLogger("hpack.hpack").debug("header with a token")
    logging.getLogger("httpx").info("request")
    structlog.get_logger().debug("ours")
    assert [line["message"] for line in lines()] == ["ours"]


def test_lines_below_the_level_are_not_written(lines):
    configure_logging("warning", "json")
    structlog.get_logger().info("no")
    logging.getLogger("anything").info("no")
    structlog.get_logger().warning("yes")
    assert [line["message"] for line in lines()] == ["yes"]


@pytest.mark.parametrize("key", ["text", "query", "payload", "task", "content", "data", "request"])
def test_contents_are_left_out_whoever_logs_them(lines, key):
    structlog.get_logger().info("slip", **{key: "what the caller said"})
    (line,) = lines()
    assert line[key] == "<20 left out>"


def test_secrets_are_masked_by_key_and_wherever_they_appear(lines):
    log = structlog.get_logger()
    log.info("a", qdrant_api_key="abc", authorization="Bearer x", page_token="p1")
    log.info("b", url="http://hush-hush@host", nested={"a": ["hush-hush"]}, count=3)
    logging.getLogger("qdrant").error("refused: hush-hush")
    first, second, third = lines()
    assert (first["qdrant_api_key"], first["authorization"]) == ("********", "********")
    assert first["page_token"] == "p1"
    assert "hush" not in json.dumps([second, third])
    assert second["count"] == 3


def test_what_the_redaction_rules_find_is_redacted_in_any_text(lines):
    key = keys.FIT["lot_key"](random.Random(1))
    structlog.get_logger().info(f"refused {key}", cause={"url": f"http://x/?token={key}"}, n=1)
    logging.getLogger("httpx").error("GET https://ann:S3cretWord@host/ failed")
    try:
        int(f"bad key {key}")
    except ValueError:
        structlog.get_logger().exception("failed", token="abc", bearer="x")
    first, second, third = lines()
    assert first["message"] == "refused [REDACTED:lot_key]"
    assert first["n"] == 1
    assert "https://ann:[REDACTED:url_password]@host/" in second["message"]
    assert (third["token"], third["bearer"]) == ("********", "********")
    assert key not in json.dumps([first, second, third])


def test_a_text_that_is_no_unicode_is_logged(lines):
    structlog.get_logger().info("password=\udcff hunter22")
    assert len(lines()) == 1


def test_a_traceback_is_whole_but_the_message_is_cut(lines):
    def fail():
        try:
            json.loads("{}")["inner"]
        except KeyError as error:
            raise ValueError("x" * 5000) from error

    try:
        fail()
    except ValueError:
        structlog.get_logger().exception("failed", call_id="c1")
    (line,) = lines()
    told = line["exception"]
    assert "KeyError: 'inner'" in told
    assert "in fail" in told
    assert "ValueError: xxx" in told
    assert told.count("x") < MAX_EXCEPTION_TEXT + 20
    assert line["call_id"] == "c1"
    assert line["level"] == "error"


def test_the_masking_reaches_tracebacks(lines):
    try:
        int("hush-hush")
    except ValueError:
        logging.getLogger("x").exception("failed")
    assert "hush-hush" not in json.dumps(lines())


def test_configuring_again_replaces_what_was_there(lines):
    configure_logging("info", "json")
    configure_logging("info", "json")
    logging.getLogger("x").warning("once")
    assert len(lines()) == 1
