"""The rough count of tokens, kind by kind."""

from __future__ import annotations

import pytest

from ropewalk.kits.messages.estimate import block_tokens, estimate_tokens, tokens_around

TEXT = "word " * 8_000
TOKENS = 10_000


def document(source, kind="txt"):
    return {"document": {"format": kind, "name": "report", "source": source}}


@pytest.mark.parametrize(
    "block",
    [
        {"text": TEXT},
        {"toolResult": {"toolUseId": "t", "content": [{"text": TEXT[:20_000]}, {"text": TEXT[20_000:]}]}},
        {"reasoningContent": {"reasoningText": {"text": TEXT, "signature": "s" * 4_000}}},
        {"reasoningContent": {"redactedContent": TEXT.encode()}},
        {"citationsContent": {"content": [{"text": TEXT}], "citations": [{"title": "t"}]}},
        {"guardContent": {"text": {"text": TEXT, "qualifiers": ["query"]}}},
        document({"bytes": TEXT.encode()}),
        document({"bytes": bytearray(TEXT.encode())}),
        document({"bytes": memoryview(TEXT.encode())}),
        document({"text": TEXT}),
        document({"text": TEXT}, "pdf"),
        document({"content": [{"text": TEXT[:20_000]}, {"text": TEXT[20_000:]}]}),
    ],
    ids=lambda block: next(iter(block)),
)
def test_a_text_counts_a_quarter_of_its_characters_wherever_it_stands(block):
    assert block_tokens(block) == TOKENS


@pytest.mark.parametrize(
    ("block", "tokens"),
    [
        ({"image": {"format": "png", "source": {"bytes": b"x"}}}, 1_600),
        ({"guardContent": {"image": {"format": "png", "source": {"bytes": b"x"}}}}, 1_600),
        (document({"bytes": b"x" * 40_000}, "pdf"), 2_000),
        ({"video": {"format": "mp4", "source": {"bytes": b"x" * 40_000}}}, 200),
        (document({"s3Location": {"uri": "s3://bucket/key"}}, "pdf"), 1_600),
        ({"video": {"format": "mp4", "source": {"location": {"uri": "s3://bucket/key"}}}}, 1_600),
        (document({"content": [{"image": {"format": "png"}}]}), 1_600),
        ({"cachePoint": {"type": "default"}}, 0),
        ({"text": None}, 0),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_is_no_text_counts_by_its_kind(block, tokens):
    assert block_tokens(block) == tokens


@pytest.mark.parametrize("letter", ["x", "я", "字"])
def test_json_counts_its_characters_in_every_script(letter):
    plain = {"toolUse": {"toolUseId": "t", "name": "write", "input": {"text": "x" * 1_000}}}
    block = {"toolUse": {"toolUseId": "t", "name": "write", "input": {"text": letter * 1_000}}}
    assert block_tokens(block) == block_tokens(plain)
    assert block_tokens({"json": [letter * 1_000]}) == block_tokens({"json": ["x" * 1_000]})


def test_a_request_is_the_sum_of_its_parts():
    message = {"role": "user", "content": [{"text": "abcd"}, {"text": "abcde"}]}
    assert estimate_tokens([message, message]) == 2 * 3
    assert tokens_around([{"text": "abcd"}], [{"name": "t", "description": "", "inputSchema": {"json": {}}}]) > 20
