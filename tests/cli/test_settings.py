from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from lot_grpc.addresses import is_loopback, split_address
from lot_grpc.bootstrap import ranking_weights, structural_weights
from lot_grpc.domain.ranking import RankingWeights
from lot_grpc.domain.recommendation import DEFAULT_WEIGHTS, StructuralWeights
from lot_grpc.settings import (
    REFERENCE_FILE,
    OpenAISettings,
    RankingSettings,
    ServerSettings,
    Settings,
    StorageSettings,
    env_name,
    groups,
)
from lot_grpc.settings_file import SettingsError, explain_settings, load_settings

TLS = {"LOT_TLS_CERT": "/c", "LOT_TLS_KEY": "/k"}


def problems_of(config: Path | None = None) -> str:
    with pytest.raises(SettingsError) as caught:
        load_settings(config)
    return "\n".join(caught.value.problems)


# --- the reference ---------------------------------------------------------------------------


def test_the_reference_names_every_setting_and_no_other():
    written = tomllib.loads(REFERENCE_FILE.read_text())
    assert {name: list(table) for name, table in written.items()} == {
        name: list(group.model_fields) for name, group in groups().items()
    }


def test_the_reference_holds_the_defaults():
    assert load_settings(REFERENCE_FILE) == Settings()


def test_the_reference_explains_each_setting_and_names_its_variable():
    comment = ""
    group = ""
    seen = []
    for line in REFERENCE_FILE.read_text().splitlines():
        if found := re.fullmatch(r"\[(\w+)\]", line):
            group = found[1]
        elif line.startswith("#"):
            comment += line + "\n"
        elif key := re.match(r"(\w+) = ", line):
            assert f"[{env_name(group, key[1])}]" in comment, key[1]
            assert len(comment) > 60, f"{key[1]} is hardly explained"
            seen.append(key[1])
        else:
            comment = ""
    assert len(seen) == sum(len(group.model_fields) for group in groups().values())


NUMBER = r"(\d[\d,]*(?:\.\d+)?|\.\d+)( MiB)?"
WRITTEN = (
    rf"`(?P<name>LOT_\w+)` \({NUMBER}\)",  # `LOT_MAX_CONNECTIONS` (1,000)
    rf"\| `(?P<name>LOT_\w+)` \| {NUMBER} \|",  # a row of a table
    rf"\| {NUMBER} \| `(?P<name>LOT_\w+)` \|",
    rf"{NUMBER}(?: \w+)?(?:\*\*)? \(`(?P<name>LOT_\w+)`\)",  # 7 days (`LOT_CHANGES_KEEP_DAYS`)
)


def written_defaults() -> list[tuple[str, str, float]]:
    """The documents' numbers beside the name of a setting: document, variable, number."""
    root = Path(__file__).parents[2]
    found = []
    for document in (root / "README.md", *sorted((root / "docs").glob("*.md"))):
        for pattern in WRITTEN:
            for match in re.finditer(pattern, document.read_text()):
                name = match["name"]
                number, mib = (group for group in match.groups() if group != name)
                value = float(number.replace(",", "")) * (2**20 if mib else 1)
                found.append((document.name, name, value))
    return found


def test_the_documents_name_the_defaults():
    found = written_defaults()
    defaults = {
        env_name(name, key): field.default
        for name, group in groups().items()
        for key, field in group.model_fields.items()
    }
    assert [one for one in found if defaults[one[1]] != one[2]] == []
    assert len(found) >= 18


# --- where values come from -------------------------------------------------------------------


def test_the_environment_wins_over_the_file_and_the_file_over_the_default(tmp_path, monkeypatch):
    file = tmp_path / "lot.toml"
    file.write_text("[limits]\nmax_streams = 7\nmax_batch_items = 8\n")
    monkeypatch.setenv("LOT_MAX_STREAMS", "9")
    limits = load_settings(file).limits
    assert (limits.max_streams, limits.max_batch_items, limits.max_concurrent_calls) == (9, 8, 256)


def test_the_file_may_be_named_by_a_variable(tmp_path, monkeypatch):
    file = tmp_path / "lot.toml"
    file.write_text('[storage]\ndata_dir = "elsewhere"\n')
    monkeypatch.setenv("LOT_CONFIG", str(file))
    assert load_settings().storage.data_dir == Path("elsewhere")


def test_an_empty_variable_counts_as_not_set(tmp_path, monkeypatch):
    file = tmp_path / "lot.toml"
    file.write_text("[limits]\nmax_streams = 7\n")
    monkeypatch.setenv("LOT_MAX_STREAMS", "")
    assert load_settings(file).limits.max_streams == 7


def test_what_code_gives_wins_over_the_environment(monkeypatch):
    monkeypatch.setenv("LOT_DATA_DIR", "/precious")
    assert StorageSettings(data_dir=Path("scratch")).data_dir == Path("scratch")


def test_home_is_expanded(monkeypatch):
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.setenv("LOT_DATA_DIR", "~/lot")
    monkeypatch.setenv("LOT_EMBEDDING_PATH", "~/model")
    settings = load_settings()
    assert settings.storage.data_dir == Path("/home/someone/lot")
    assert settings.embedding.path == Path("/home/someone/model")


def test_every_setting_is_told_with_its_origin(tmp_path, monkeypatch):
    file = tmp_path / "lot.toml"
    file.write_text("[ranking]\nreorder_margin = 0.05\n")
    monkeypatch.setenv("LOT_LOG_LEVEL", "DEBUG")
    told = {value.key: value for value in explain_settings(load_settings(file), file)}
    margin = told["ranking.reorder_margin"]
    assert (margin.value, margin.origin) == (0.05, "file")
    assert (told["log.level"].value, told["log.level"].origin) == ("debug", "environment")
    assert told["log.format"].origin == "default"
    assert told["storage.data_dir"].value == "lot-data"


def test_lists_are_written_with_commas_in_the_environment(tmp_path, monkeypatch):
    file = tmp_path / "lot.toml"
    file.write_text('[seed]\nnamespaces = ["a", "b"]\npacks = ["/x.toml"]\n')
    seed = load_settings(file).seed
    assert (seed.namespaces, seed.packs) == (("a", "b"), (Path("/x.toml"),))
    monkeypatch.setenv("LOT_SEED_NAMESPACES", "c, d ,")
    monkeypatch.setenv("LOT_SEED_PACKS", "/y.toml,z.toml")
    settings = load_settings(file)
    assert settings.seed.namespaces == ("c", "d")
    assert settings.seed.packs == (Path("/y.toml"), Path("z.toml"))
    told = {value.key: value.value for value in explain_settings(settings, file)}
    assert told["seed.packs"] == "/y.toml, z.toml"
    monkeypatch.setenv("LOT_SEED_NAMESPACES", "c,no space")
    assert "LOT_SEED_NAMESPACES" in problems_of()


def test_seeding_at_start_needs_a_namespace(monkeypatch):
    monkeypatch.setenv("LOT_SEED_NAMESPACES", ",")
    assert load_settings().seed.namespaces == ()
    monkeypatch.setenv("LOT_SEED_ON_START", "true")
    assert "LOT_SEED_NAMESPACES" in problems_of()


# --- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variable", "nearest"),
    [
        ("LOT_ADRESS", "LOT_ADDRESS"),
        ("LOT_EMBEDING_MODEL", "LOT_EMBEDDING_MODEL"),
        ("LOT_QDRANT_APIKEY", "LOT_QDRANT_API_KEY"),
        ("lot_max_steams", "LOT_MAX_STREAMS"),
    ],
)
def test_an_unknown_variable_is_refused_with_the_nearest_name(monkeypatch, variable, nearest):
    monkeypatch.setenv(variable, "x")
    assert f"{variable.upper()}: no such setting; did you mean {nearest}?" in problems_of()


def test_variables_of_tests_and_clients_are_left_alone(monkeypatch):
    monkeypatch.setenv("LOT_TEST_QDRANT_URL", "http://127.0.0.1:6333")
    monkeypatch.setenv("LOT_CLIENT_TIMEOUT", "3")
    assert load_settings() == Settings()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[limits]\nmax_strems = 3",
            "limits.max_strems: no such setting; did you mean limits.max_",
        ),
        ("[limit]\nmax_streams = 3", "limit: no such setting; did you mean limits?"),
        ("max_streams = 3", "max_streams: no such setting; did you mean limits.max_streams?"),
        ("[redact]\nredact = true", "redact.redact: no such setting; did you mean redact.enabled?"),
        ("[redact]\nredact_rules_off = []", "did you mean redact.rules_off?"),
        ("[audit]\naudit = 'off'", "audit.audit: no such setting; did you mean audit.output?"),
        ("[audit]\naudit_files = 3", "did you mean audit.files?"),
        ("[tls]\ntls_cert = 'a'", "did you mean tls.cert?"),
        ("limits = 3", "limits is a group of settings; write it as [limits]"),
        ("[limits]\nmax_streams = 'x'", "limits.max_streams = 'x': should be a valid integer"),
        ("[limits", "is not valid TOML"),
        ("[log]\nlevel = 'loud'", "log.level = 'loud': should be 'debug', 'info'"),
    ],
)
def test_a_mistake_in_the_file_names_the_file_and_the_place(tmp_path, text, said):
    file = tmp_path / "lot.toml"
    file.write_text(text)
    told = problems_of(file)
    assert said in told
    assert str(file) in told


def test_a_file_that_is_not_there_is_an_error(tmp_path):
    assert "No such file" in problems_of(tmp_path / "none.toml")


def test_all_mistakes_are_told_at_once(tmp_path, monkeypatch):
    file = tmp_path / "lot.toml"
    file.write_text("[ranking]\nreorder_margin = 3\n[log]\ncolour = 'red'\n")
    monkeypatch.setenv("LOT_MAX_STREAMS", "many")
    monkeypatch.setenv("LOT_ADRESS", "x")
    told = problems_of(file)
    for name in ("ranking.reorder_margin", "log.colour", "LOT_MAX_STREAMS = 'many'", "LOT_ADRESS"):
        assert name in told


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"LOT_STORE": "qdrant"}, "needs LOT_QDRANT_URL"),
        ({"LOT_RECOMMENDATION_TEXT_WEIGHT": "0.5"}, "add up to 1.4; they must add up to 1"),
        ({"LOT_QDRANT_URL": "http://127.0.0.1:6333"}, "set LOT_STORE=qdrant, or remove them"),
        ({"LOT_MAX_REQUEST_BYTES": "70000"}, "set it to LOT_MAX_MESSAGE_BYTES=16777216 or more"),
        ({"LOT_QDRANT_API_KEY": "k"}, "set LOT_STORE=qdrant, or remove them"),
        (
            {"LOT_STORE": "qdrant", "LOT_QDRANT_URL": "http://x:6333", "LOT_SYNC": "always"},
            "LOT_SYNC=always is only for LOT_STORE=edge",
        ),
        (
            {"LOT_EMBEDDING_PROVIDER": "openai", "LOT_EMBEDDING_PATH": "/m"},
            "LOT_EMBEDDING_PROVIDER=openai has no model files",
        ),
        ({"LOT_OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, "set LOT_EMBEDDING_PROVIDER=openai"),
        ({"LOT_ADDRESS": "0.0.0.0:50051"}, "not encrypted; bind 127.0.0.1, set LOT_TLS_CERT"),
        ({"LOT_ADDRESS": "0.0.0.0:50051"}, "or set LOT_ALLOW_PLAINTEXT=true"),
        ({"LOT_ADDRESS": "[::]:50051"}, "or set LOT_ALLOW_ANONYMOUS=true"),
        ({"LOT_ADDRESS": "example.test:50051"}, "set LOT_AUTH_KEYS"),
        ({"LOT_TLS_CERT": "/c"}, "LOT_TLS_CERT needs LOT_TLS_KEY"),
        ({"LOT_TLS_KEY": "/k"}, "LOT_TLS_KEY needs LOT_TLS_CERT"),
        ({"LOT_TLS_CLIENT_CA": "/a"}, "LOT_TLS_CLIENT_CA needs LOT_TLS_CERT and LOT_TLS_KEY"),
        (
            {**TLS, "LOT_TLS_CLIENT_ADDRESS": "127.0.0.1:50052"},
            "LOT_TLS_CLIENT_ADDRESS needs LOT_TLS_CLIENT_CA",
        ),
        (
            {**TLS, "LOT_TLS_CLIENT_CA": "/a", "LOT_TLS_CLIENT_ADDRESS": "127.0.0.1:50051"},
            "is LOT_ADDRESS as well; give it another port",
        ),
        ({"LOT_METRICS_ADDRESS": "0.0.0.0:9464"}, "LOT_METRICS_ALLOW_NON_LOOPBACK=true"),
        ({"LOT_METRICS_ADDRESS": "9464"}, "should be host:port"),
        ({"LOT_OTEL_CONTENTS": "true"}, "set LOT_OTEL_ENDPOINT, or remove it"),
        ({"LOT_OTEL_ENDPOINT": "127.0.0.1:4317"}, "should be http:// or https:// with"),
        ({"LOT_OTEL_ENDPOINT": "http://collector"}, "LOT_OTEL_ENDPOINT = 'http://collector'"),
        ({"LOT_OTEL_ENDPOINT": "http://me:secret@x:1"}, "LOT_OTEL_ENDPOINT: should be"),
        ({"LOT_OTEL_SAMPLE_RATIO": "2"}, "LOT_OTEL_SAMPLE_RATIO = '2'"),
        ({"LOT_OTEL_METRICS_SECONDS": "-1"}, "LOT_OTEL_METRICS_SECONDS = '-1'"),
    ],
)
def test_a_contradiction_is_refused_and_says_what_to_change(monkeypatch, given, said):
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert said in problems_of()


def test_several_contradictions_are_told_together(monkeypatch):
    monkeypatch.setenv("LOT_ADDRESS", "0.0.0.0:1")
    monkeypatch.setenv("LOT_STORE", "qdrant")
    told = problems_of()
    assert "LOT_ALLOW_PLAINTEXT" in told
    assert "LOT_ALLOW_ANONYMOUS" in told
    assert "LOT_QDRANT_URL" in told


def test_the_weights_of_recommendations_are_those_that_are_set(monkeypatch):
    assert structural_weights(load_settings()) == DEFAULT_WEIGHTS
    weights = {"CATEGORY": 0.1, "TASK_TYPE": 0.2, "COMPLEXITY": 0.3, "TEXT": 0.4}
    for name, weight in weights.items():
        monkeypatch.setenv(f"LOT_RECOMMENDATION_{name}_WEIGHT", str(weight))
    assert structural_weights(load_settings()) == StructuralWeights(0.1, 0.2, 0.3, 0.4)


@pytest.mark.parametrize("name", RankingSettings.model_fields)
def test_every_ranking_setting_has_an_effect(monkeypatch, name):
    assert ranking_weights(load_settings()) == RankingWeights()
    monkeypatch.setenv(env_name("ranking", name), "0.5")
    assert ranking_weights(load_settings()) != RankingWeights()


def test_listening_beyond_loopback_goes_when_it_is_asked_for_by_name(monkeypatch):
    monkeypatch.setenv("LOT_ADDRESS", "0.0.0.0:50051")
    monkeypatch.setenv("LOT_ALLOW_ANONYMOUS", "true")
    assert "LOT_ALLOW_PLAINTEXT" in problems_of()
    monkeypatch.setenv("LOT_ALLOW_PLAINTEXT", "true")
    assert load_settings().server.host == "0.0.0.0"
    monkeypatch.delenv("LOT_ALLOW_ANONYMOUS")
    assert "LOT_ALLOW_ANONYMOUS" in problems_of()


def test_tls_and_client_certificates_open_an_address_beyond_loopback(monkeypatch):
    for name, value in {**TLS, "LOT_ADDRESS": "0.0.0.0:50051"}.items():
        monkeypatch.setenv(name, value)
    told = problems_of()
    assert "LOT_ALLOW_ANONYMOUS" in told
    assert "LOT_ALLOW_PLAINTEXT" not in told
    monkeypatch.setenv("LOT_TLS_CLIENT_CA", "/a")
    settings = load_settings()
    assert settings.tls.requires_certificates
    assert not settings.authenticates


def test_a_secret_is_in_no_message_and_no_listing(monkeypatch):
    monkeypatch.setenv("LOT_QDRANT_API_KEY", "hush-hush")
    assert "hush-hush" not in problems_of()
    monkeypatch.setenv("LOT_STORE", "qdrant")
    monkeypatch.setenv("LOT_QDRANT_URL", "http://127.0.0.1:6333")
    settings = load_settings()
    assert "hush-hush" not in repr(settings) + str(explain_settings(settings))
    assert settings.qdrant.api_key is not None
    assert settings.qdrant.api_key.get_secret_value() == "hush-hush"


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"OPENAI_API_KEY": "usual"}, "usual"),
        ({"OPENAI_API_KEY": "usual", "LOT_OPENAI_API_KEY": "o-key"}, "o-key"),
        (
            {"OPENAI_API_KEY": "usual", "LOT_OPENAI_BASE_URL": "https://eu.api.openai.com/v1"},
            "usual",
        ),
        ({"OPENAI_API_KEY": "usual", "LOT_OPENAI_BASE_URL": "http://127.0.0.1:11434/v1"}, None),
        ({"OPENAI_API_KEY": "usual", "LOT_OPENAI_BASE_URL": "https://notopenai.com/v1"}, None),
        ({"OPENAI_API_KEY": "usual", "LOT_OPENAI_BASE_URL": "http://api.openai.com/v1"}, None),
        (
            {"LOT_OPENAI_API_KEY": "o-key", "LOT_OPENAI_BASE_URL": "http://127.0.0.1:1/v1"},
            "o-key",
        ),
        ({}, None),
    ],
)
def test_the_usual_key_of_openai_goes_to_nobody_else(monkeypatch, given, key):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("LOT_EMBEDDING_PROVIDER", "openai")
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    settings = load_settings()
    found = settings.openai.api_key
    assert (found.get_secret_value() if found else None) == key
    assert not key or key not in repr(settings) + str(explain_settings(settings))


def test_the_key_of_an_endpoint_may_not_stand_in_a_file(tmp_path):
    file = tmp_path / "lot.toml"
    file.write_text('[openai]\napi_key = "hush-hush"\n')
    told = problems_of(file)
    assert f"{file}: openai.api_key is a secret; set LOT_OPENAI_API_KEY instead" in told
    assert "hush-hush" not in told


def test_spaces_of_a_query_prefix_count(monkeypatch):
    monkeypatch.setenv("LOT_OPENAI_QUERY_PREFIX", "search_query: ")
    assert load_settings().openai.query_prefix == "search_query: "


@pytest.mark.parametrize(
    "url", ["localhost:11434/v1", "ftp://h/v1", "https://user:pw@h/v1", "https://h/v1?a=b", ""]
)
def test_the_address_of_an_endpoint_is_one_of_http_without_a_password(url):
    with pytest.raises(ValueError, match="base_url"):
        OpenAISettings(base_url=url)


def test_settings_cannot_be_changed_after_they_were_read():
    with pytest.raises(ValueError, match="frozen"):
        load_settings().log.level = "debug"


# --- addresses --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("127.0.0.1:50051", ("127.0.0.1", 50051)),
        ("localhost:0", ("localhost", 0)),
        ("[::1]:65535", ("::1", 65535)),
    ],
)
def test_an_address_is_a_host_and_a_port(address, parts):
    assert split_address(address) == parts
    server = ServerSettings(address=address)
    assert (server.host, server.port, server.address) == (*parts, address)


@pytest.mark.parametrize(
    "address",
    ["", "50051", ":50051", "host", "host:", "host:x", "host:65536", "::1:50051", "a b:1"],
)
def test_what_is_no_address_is_refused(address):
    with pytest.raises(ValueError, match=r"host:port|port|brackets"):
        split_address(address)


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("LOCALHOST", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("localhost.example", False),
    ],
)
def test_loopback_is_what_only_this_machine_reaches(host, loopback):
    assert is_loopback(host) is loopback


@pytest.mark.parametrize("variable", ["LOT_OPENAI_BASE_URL", "LOT_QDRANT_URL"])
def test_a_password_in_an_address_that_is_refused_is_not_repeated(monkeypatch, variable):
    monkeypatch.setenv(variable, "http://user:swordfish@127.0.0.1/v1?api-key=swordfish")
    with pytest.raises(SettingsError) as refused:
        load_settings()
    assert variable in str(refused.value)
    assert "swordfish" not in str(refused.value)
