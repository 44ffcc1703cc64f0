"""The estimate of tokens is no lower than what the model's own tokenizer counts."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from lot_grpc.domain.context.tokens import token_count
from lot_grpc.embedding.catalog import PACKS
from tests.golden.contexts import TASKS, kept

MIXED = """
Log in to the admin panel of the kubernetes deployment, idempotently; OAuth2 with PKCE.
def open(path: str) -> int:
    return os.open(path, os.O_RDONLY | 0x1f)
3f9a8c1e-77b2-4d1f-9a0b-1234567890ab 2026-03-04T05:06:07Z sha256:deadbeefcafebabe0011
数据库连接超时。请重试。東京都で会議があります。한국어 문장을 처리합니다.
اتصال قاعدة البيانات انتهت مهلته. Проверка подключения не удалась. नमस्ते दुनिया
👩‍👩‍👧‍👦🚀 naïve café Überprüfung ERR_CONNECTION_REFUSED ENOENT {"a": [1, 2.5, null]}
"""


def _tokenizer():
    from tokenizers import Tokenizer

    for pack in PACKS:
        spec = importlib.util.find_spec(pack.package)
        if spec is not None and spec.origin and pack.model.startswith("BAAI/bge-small-en"):
            folder = Path(spec.origin).parent / pack.subfolder
            made = Tokenizer.from_file(str(folder / "tokenizer.json"))
            made.no_truncation()
            made.no_padding()
            return made
    return pytest.skip("the model's pack is not installed")


def test_no_lower_than_word_pieces():
    tokenizer = _tokenizer()
    docs = Path(__file__).parents[2] / "docs"
    texts = [*MIXED.strip().splitlines(), MIXED, *(kept(name) for name in TASKS)]
    texts += [page.read_text(encoding="utf-8") for page in sorted(docs.glob("*.md"))]
    for text in texts:
        pieces = len(tokenizer.encode(text, add_special_tokens=False).ids)
        assert token_count(text) >= pieces, text[:80]
