"""What a query finds with the real model, store and process: a table, for every kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from lot_grpc.pb.lot.v1 import (
    episode_service_pb2_grpc,
    memory_service_pb2_grpc,
    outcome_pb2,
    pattern_service_pb2_grpc,
)
from lot_grpc.pb.lot.v1.episode_pb2 import EPISODE_STATUS_SUCCEEDED, Episode
from lot_grpc.pb.lot.v1.episode_service_pb2 import RecallEpisodesRequest, RecordEpisodeRequest
from lot_grpc.pb.lot.v1.memory_pb2 import Memory
from lot_grpc.pb.lot.v1.memory_service_pb2 import CreateMemoryRequest, SearchMemoriesRequest
from lot_grpc.pb.lot.v1.pattern_pb2 import Pattern
from lot_grpc.pb.lot.v1.pattern_service_pb2 import (
    BatchSavePatternsRequest,
    RecallPatternsRequest,
    SavePatternItem,
)
from tests.e2e.process import PATIENCE

NS = "table"
OPTIONS = [("grpc.enable_http_proxy", 0)]
TRUNCATED = outcome_pb2.NOTICE_CODE_QUERY_TRUNCATED
WORDLESS = outcome_pb2.NOTICE_CODE_QUERY_NOT_SEARCHABLE

TEXTS = {
    # Chinese
    "zh-backup": "部署之前先备份数据库再执行迁移脚本",
    "zh-cache": "清除浏览器缓存以后重新登录系统",
    "zh-port": "检查防火墙规则确认端口没有被占用",
    "zh-pay": "用户付款失败时给客服发送邮件通知",
    "zh-log": "把旧的日志文件压缩之后上传到对象存储",
    "zh-cert": "证书过期之前自动续签并重启网关",
    "zh-replica": "在集群中增加一个只读副本",
    # Japanese
    "ja-db": "本番環境のデータベースに接続できないときは設定ファイルを確認する",
    "ja-cache": "ブラウザのキャッシュを削除してから再ログインする",
    "ja-mail": "注文が確定したら顧客に確認メールを送信する",
    "ja-test": "テストが失敗した場合は失敗したケースだけをもう一度実行する",
    "ja-image": "画像を縮小してからサーバーにアップロードする",
    "ja-cert": "証明書の有効期限が切れる前に更新する",
    # Russian
    "ru-backup": "Перед обновлением сервера нужно сделать резервную копию базы данных",
    "ru-cache": "Очистить кэш браузера и заново войти в личный кабинет",
    "ru-cert": "Продлить сертификаты до истечения срока действия",
    "ru-mail": "Отправить покупателю письмо, что заказ подтверждён",
    "ru-log": "Сжать старые журналы и загрузить их в хранилище",
    "ru-port": "Проверить, что порт не занят другим процессом",
    # Arabic
    "ar-db": "انسخ قاعدة البيانات احتياطيا قبل تحديث الخادم",
    "ar-cache": "امسح ذاكرة المتصفح ثم سجل الدخول من جديد",
    "ar-mail": "أرسل رسالة تأكيد الطلب إلى العميل",
    "ar-file": "اضغط الملفات القديمة وارفعها إلى السحابة",
    "ar-cert": "جدد الشهادة قبل انتهاء صلاحيتها",
    # Identifiers
    "id-user": "Read the name of whoever is signed in",
    "id-role": "Read the role of whoever is signed in",
    "id-retry": "Try a request once more when it fails",
    "id-timeout": "Give up on a request when it takes too long",
    "id-idle": "Keep connections open between calls: set MaxIdleConnsPerHost on the transport",
    "id-total": "Bound the connections in all: set MaxConnsTotal on the transport",
    "id-output": "Set the build_output_dir variable before packaging",
    "id-input": "Set the build_source_list variable before packaging",
    "id-flex": "Centre a block by way of flex-container-row",
    "id-grid": "Align two blocks by way of grid-template-cell",
    # Error codes
    "E0308": "Convert the value where the compiler tells of mismatched types, E0308",
    "E0382": "Clone the value where the compiler tells of a use after a move, E0382",
    "E0277": "Implement the trait where the compiler tells of a missing bound, E0277",
    "TS2322": "Widen the prop: TS2322 says that the type is not assignable",
    "TS2345": "Narrow the argument: TS2345 says that the type is not assignable",
    "TS7006": "Annotate the parameter: TS7006 says that it is any",
    "ECONNREFUSED": "Start the database before the client, which ends with ECONNREFUSED otherwise",
    "ETIMEDOUT": "Open the firewall for the client, which ends with ETIMEDOUT otherwise",
    "ENOENT": "Create the folder before the client, which ends with ENOENT otherwise",
    "0x80070005": "Run the installer as administrator when it ends with 0x80070005",
    "0x80070002": "Put the missing file beside the installer when it ends with 0x80070002",
    "0x8007000E": "Give the machine more memory when the installer ends with 0x8007000E",
    # Paths and versions
    "path-server": "Bind the listener in src/server/main.rs to loopback only",
    "path-client": "Set the deadline in src/client/main.rs to ten seconds",
    "path-config": "Read the port in src/server/config.rs from the environment",
    "path-log": r"Delete C:\Users\x\app.log when it grows beyond a gigabyte",
    "path-ini": r"Correct C:\Users\x\app.ini when the theme is lost",
    "path-other": r"Delete C:\Users\anna\app.log when it grows beyond a gigabyte",
    "v2.31.4": "Stay on 2.31.4 of the http library until the proxy works again",
    "v2.31.0": "Leave 2.31.0 of the http library, whose proxy never worked",
    "v3.1.4": "Try 3.1.4 of the http library once the proxy works again",
    # One letter, an emoji
    "k": "Choose k for the nearest neighbours by cross-validation",
    "rocket": "Say in the channel that the release is out, with 🚀",
    "party": "Say in the channel that the tests are green, with 🎉",
    # Prose
    "en-login": "Log in to the shop and put the cheapest charger into the cart",
    "en-review": "Write a review of the last order that came late",
    "en-cake": "Bake a cake for the team when the milestone is reached",
    "en-garden": "Water the plants on the balcony every other evening",
}
CODE = {
    "id-user": "def get_user_name(session):\n    return session.user.name",
    "id-role": "def get_account_role(session):\n    return session.account.role",
    "id-retry": "const maxRetryCount = 5;\nfor (let n = 0; n < maxRetryCount; n++) await send();",
    "id-timeout": "const requestTimeoutMs = 500;\nawait send({ timeout: requestTimeoutMs });",
}

FIRST = [
    # A word inside a clause
    ("数据库", "zh-backup"),
    ("缓存", "zh-cache"),
    ("防火墙", "zh-port"),
    ("付款失败", "zh-pay"),
    ("续签证书", "zh-cert"),
    ("压缩日志", "zh-log"),
    ("データベース接続", "ja-db"),
    ("キャッシュ削除", "ja-cache"),
    ("メールを送る", "ja-mail"),
    ("アップロード", "ja-image"),
    ("証明書", "ja-cert"),
    ("失敗したテスト", "ja-test"),
    # Other forms of the words that are stored
    ("резервные копии", "ru-backup"),
    ("кэша браузеров", "ru-cache"),
    ("сертификатов", "ru-cert"),
    ("письма покупателям", "ru-mail"),
    ("старый журнал", "ru-log"),
    ("занятые порты", "ru-port"),
    ("بيانات", "ar-db"),
    ("متصفح", "ar-cache"),
    ("الرسالة", "ar-mail"),
    ("ملف", "ar-file"),
    ("شهادة", "ar-cert"),
    ("شَهَادَة", "ar-cert"),
    # Identifiers, written otherwise
    ("getUserName", "id-user"),
    ("get_user_name", "id-user"),
    ("GetUserName", "id-user"),
    ("getAccountRole", "id-role"),
    ("max_retry_count", "id-retry"),
    ("MAX_RETRY_COUNT", "id-retry"),
    ("request-timeout-ms", "id-timeout"),
    ("max_idle_conns_per_host", "id-idle"),
    ("maxConnsTotal", "id-total"),
    ("buildOutputDir", "id-output"),
    ("BUILD_SOURCE_LIST", "id-input"),
    ("flexContainerRow", "id-flex"),
    ("grid_template_cell", "id-grid"),
    # A code, a path, a version alone
    *((code, code) for code in TEXTS if code[0] in "ET0"),
    ("e0308", "E0308"),
    ("error[E0308]: mismatched types", "E0308"),
    ("connect ECONNREFUSED 127.0.0.1:5432", "ECONNREFUSED"),
    ("src/server/main.rs", "path-server"),
    ("src/client/main.rs", "path-client"),
    (r"C:\Users\x\app.log", "path-log"),
    (r"c:\users\X\app.ini", "path-ini"),
    ("2.31.4", "v2.31.4"),
    ("3.1.4", "v3.1.4"),
    # One character
    ("k", "k"),
    ("中", "zh-replica"),
    ("🚀", "rocket"),
    ("🎉", "party"),
    # Meaning alone
    ("sign in and buy a phone accessory", "en-login"),
    ("take care of the flowers", "en-garden"),
]

ANY = {
    "only function words": "what is to be done about it",
    "a letter that several have": "x",
    "an emoji that nothing has": "🦄",
    "a word that nothing has": "zyzzyva",
    "a script that nothing has": "ᚠᚢᚦᚨᚱᚲ",
    "one long word": "x" * 50_000,
    "one long identifier": "_a" * 25_000,
    "Chinese without an end": "数据库" * 7_000,
    "marks without an end": "a" + "\u0301\u0323" * 16_000,
}
NOTHING = ["?!... -> ()", "---", " ", "\n\t \u3000", "\u200b\u202e", "_", "\x01\x02"]


class Table:
    """The texts as patterns, as memories and as episodes, and the questions for each."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._patterns: Any = pattern_service_pb2_grpc.PatternServiceStub(channel)
        self._memories: Any = memory_service_pb2_grpc.MemoryServiceStub(channel)
        self._episodes: Any = episode_service_pb2_grpc.EpisodeServiceStub(channel)

    def fill(self) -> None:
        items = [
            SavePatternItem(
                pattern=Pattern(task=text, code=CODE.get(name, "")), pattern_id=f"p{name}"
            )
            for name, text in TEXTS.items()
        ]
        saved = self._patterns.BatchSavePatterns(
            BatchSavePatternsRequest(namespace=NS, items=items), timeout=PATIENCE
        )
        assert (saved.created_count, saved.failed_count) == (len(TEXTS), 0)
        for name, text in TEXTS.items():
            whole = f"{text}\n{CODE[name]}" if name in CODE else text
            self._memories.CreateMemory(
                CreateMemoryRequest(
                    namespace=NS, memory=Memory(content=whole), memory_id=f"p{name}"
                ),
                timeout=PATIENCE,
            )
            self._episodes.RecordEpisode(
                RecordEpisodeRequest(
                    namespace=NS,
                    episode=Episode(task=whole, status=EPISODE_STATUS_SUCCEEDED),
                    episode_id=f"p{name}",
                ),
                timeout=PATIENCE,
            )

    def ask(self, resource_kind: str, query: str, **named: Any) -> tuple[list[str], Any]:
        """Names of the hits, and the answer."""
        asked: dict[str, Any] = {"namespace": NS, "query": query, **named}
        match resource_kind:
            case "patterns":
                answer = self._patterns.RecallPatterns(
                    RecallPatternsRequest(**asked), timeout=PATIENCE
                )
                return [hit.pattern.pattern_id[1:] for hit in answer.hits], answer
            case "memories":
                answer = self._memories.SearchMemories(
                    SearchMemoriesRequest(**asked), timeout=PATIENCE
                )
                return [hit.memory.memory_id[1:] for hit in answer.hits], answer
            case _:
                answer = self._episodes.RecallEpisodes(
                    RecallEpisodesRequest(**asked), timeout=PATIENCE
                )
                return [hit.episode.episode_id[1:] for hit in answer.hits], answer


RESOURCE_KINDS = pytest.mark.parametrize("resource_kind", ["patterns", "memories", "episodes"])


@pytest.fixture(scope="session")  # a process that runs tests may come to this module twice
def table(running) -> Iterator[Table]:
    with grpc.insecure_channel(running.address, OPTIONS) as channel:
        made = Table(channel)
        made.fill()
        yield made


def codes(answer: Any) -> list[int]:
    return [notice.code for notice in answer.notices]


def told(answer: Any) -> list[tuple[float, float]]:
    return [(round(hit.score, 3), round(hit.similarity, 3)) for hit in answer.hits]


@RESOURCE_KINDS
@pytest.mark.parametrize(("query", "expected"), FIRST)
def test_what_is_meant_comes_first(table, resource_kind, query, expected):
    found, answer = table.ask(resource_kind, query)
    assert found[0] == expected, (found, told(answer))
    assert codes(answer) == []


@RESOURCE_KINDS
@pytest.mark.parametrize("query", ANY.values(), ids=ANY.keys())
def test_any_other_query_is_answered(table, resource_kind, query):
    found, answer = table.ask(resource_kind, query)
    assert len(found) == 5
    assert WORDLESS not in codes(answer)
    assert all(0 <= hit.score <= 1 for hit in answer.hits)


def test_a_letter_alone_finds_who_has_it(table):
    found, _ = table.ask("patterns", "x", limit=2)
    assert set(found) == {"path-log", "path-ini"}


@RESOURCE_KINDS
@pytest.mark.parametrize("query", NOTHING, ids=repr)
def test_a_query_that_says_nothing_finds_nothing_and_is_told_so(table, resource_kind, query):
    found, answer = table.ask(resource_kind, query)
    assert found == []
    assert codes(answer) == [WORDLESS]
    assert answer.notices[0].field == "query"
    assert answer.retrieval_id


@RESOURCE_KINDS
def test_of_a_query_of_fifty_thousand_characters_the_beginning_counts(table, resource_kind):
    words = (f"word{chr(97 + n % 26)}{chr(97 + n // 26 % 26)}{n}" for n in range(10_000))
    query = f"{TEXTS['en-cake']}. {' '.join(words)}"[:50_000]
    found, answer = table.ask(resource_kind, query)
    assert len(found) == 5
    assert codes(answer) == [TRUNCATED]


@pytest.mark.parametrize("resource_kind", ["patterns", "memories"])
def test_the_real_cross_encoder_takes_part_when_asked_to(table, resource_kind):
    query = "who is the current user of this session"
    plain, before = table.ask(resource_kind, query, explain=True, limit=10)
    found, after = table.ask(resource_kind, query, explain=True, limit=10, rerank=True)
    assert codes(after) == []
    assert set(found[:1]) <= {"id-user", "id-role"}
    names = [{part.name for part in hit.score_parts} for hit in after.hits]
    assert all("rerank" in one for one in names)
    assert not any("rerank" in {p.name for p in hit.score_parts} for hit in before.hits)
    assert [hit.score for hit in after.hits] != [hit.score for hit in before.hits]
    for hit in after.hits:
        assert hit.score == pytest.approx(sum(p.value * p.weight for p in hit.score_parts))
    assert plain[0] in found


def test_a_server_without_a_cross_encoder_answers_unless_it_is_asked_for(serve, data, tmp_path):
    empty = tmp_path / "no-model"
    empty.mkdir()
    served = serve(data, {"LOT_RERANK_PATH": str(empty)})
    with grpc.insecure_channel(served.address, OPTIONS) as channel:
        table = Table(channel)
        table.fill()
        for resource_kind in ("patterns", "memories"):
            assert table.ask(resource_kind, "E0308")[0][0] == "E0308"
            with pytest.raises(grpc.RpcError) as caught:
                table.ask(resource_kind, "E0308", rerank=True)
            assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION
            assert "lot-grpc check" in str(caught.value.details())
            assert table.ask(resource_kind, "E0308")[0][0] == "E0308"
