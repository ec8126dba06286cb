from __future__ import annotations

import copy
import re

import pytest

from ropewalk.kits.model_errors import ModelRequestError
from ropewalk_bedrock.blocks import BlockWriter, legal_id

LEGAL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@pytest.fixture
def writer():
    return BlockWriter(with_status=True, with_reasoning=True)


PNG = {"format": "png", "source": {"bytes": b"\x89PNG"}}
UNCHANGED = [
    {"text": "hello"},
    {"image": PNG},
    {"image": {"format": "webp", "source": {"s3Location": {"uri": "s3://b/k", "bucketOwner": "123456789012"}}}},
    {"video": {"format": "mp4", "source": {"s3Location": {"uri": "s3://b/v.mp4"}}}},
    {"document": {"format": "pdf", "name": "Report (2)", "source": {"bytes": b"%PDF"}, "citations": {"enabled": True}}},
    {"document": {"format": "txt", "name": "notes", "source": {"text": "abc"}, "context": "of today"}},
    {"toolUse": {"toolUseId": "T1", "name": "add", "input": {"a": 1}}},
    {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "S"}}},
    {"reasoningContent": {"reasoningText": {"text": "hm"}}},
    {"reasoningContent": {"reasoningText": {"text": "", "signature": "S"}}},
    {"reasoningContent": {"redactedContent": b"\x01"}},
    {"guardContent": {"text": {"text": "guard me"}}},
    {"cachePoint": {"type": "default", "ttl": "1h"}},
    {
        "citationsContent": {
            "content": [{"text": "so"}],
            "citations": [
                {
                    "title": "T",
                    "source": "S",
                    "sourceContent": [{"text": "c"}],
                    "location": {"web": {"url": "https://example.org"}},
                }
            ],
        }
    },
]


@pytest.mark.parametrize("block", UNCHANGED, ids=str)
def test_a_block_of_converse_is_sent_as_it_is(writer, block):
    before = copy.deepcopy(block)

    assert writer.write(block) == block
    assert block == before


DROPPED = [
    {"text": "   "},
    {"text": ""},
    {"reasoningContent": {}},
    {"reasoningContent": {"reasoningText": {"text": "", "signature": ""}}},
    {"citationsContent": {"content": [], "citations": [{"title": "T"}]}},
    {"somethingElse": {"a": 1}},
]


@pytest.mark.parametrize("block", DROPPED, ids=str)
def test_what_converse_refuses_is_left_out(writer, block):
    assert writer.write(block) is None


def test_an_empty_signature_is_no_signature(writer):
    written = writer.write({"reasoningContent": {"reasoningText": {"text": "hm", "signature": ""}}})

    assert written == {"reasoningContent": {"reasoningText": {"text": "hm"}}}


def test_fields_of_others_are_left_out(writer):
    use = {"toolUseId": "T1", "name": "add", "input": {}, "reasoningSignature": "x"}

    assert writer.write({"toolUse": use, "custom": 1}) == {"toolUse": {"toolUseId": "T1", "name": "add", "input": {}}}


def test_lone_surrogates_are_replaced(writer):
    assert writer.write({"text": "bad \ud83d end"}) == {"text": "bad \ufffd end"}


@pytest.mark.parametrize("use_id", ["call_1|fc_2", "", "x" * 80, "ä", None])
def test_an_illegal_id_becomes_the_same_legal_one_in_use_and_result(writer, use_id):
    use = writer.write({"toolUse": {"toolUseId": use_id, "name": "add", "input": {}}})["toolUse"]
    result = writer.write({"toolResult": {"toolUseId": use_id, "status": "success", "content": []}})["toolResult"]

    assert LEGAL_ID.fullmatch(use["toolUseId"])
    assert use["toolUseId"] == result["toolUseId"]
    assert legal_id("call_1|fc_2") != legal_id("call_1|fc_3")


def test_an_illegal_name_is_replaced(writer):
    written = writer.write({"toolUse": {"toolUseId": "T1", "name": "bad name!", "input": {}}})

    assert written["toolUse"]["name"] == "INVALID_TOOL_NAME"


def test_a_tool_result_may_hold_pictures_and_documents(writer):
    result = {
        "toolUseId": "T1",
        "status": "error",
        "content": [{"text": "x"}, {"json": {"a": 1}}, {"image": PNG}, {"text": ""}, {"unknown": 1}],
    }

    assert writer.write({"toolResult": result}) == {
        "toolResult": {
            "toolUseId": "T1",
            "status": "error",
            "content": [{"text": "x"}, {"json": {"a": 1}}, {"image": PNG}],
        }
    }


def test_json_that_is_no_object_is_sent_as_text(writer):
    result = {"toolUseId": "T1", "status": "success", "content": [{"json": [1, "zwölf"]}, {"json": None}]}

    assert writer.write({"toolResult": result})["toolResult"]["content"] == [{"text": '[1, "zwölf"]'}, {"text": "null"}]


def test_an_empty_tool_result_says_so(writer):
    result = {"toolUseId": "T1", "status": "success", "content": []}

    assert writer.write({"toolResult": result})["toolResult"]["content"] == [{"text": "[blank text]"}]


def test_the_status_is_left_out_for_models_that_do_not_take_it():
    writer = BlockWriter(with_status=False, with_reasoning=True)
    result = {"toolUseId": "T1", "status": "error", "content": [{"text": "x"}]}

    assert "status" not in writer.write({"toolResult": result})["toolResult"]


def test_thinking_is_left_out_for_models_that_do_not_take_it():
    writer = BlockWriter(with_status=True, with_reasoning=False)

    assert writer.write({"reasoningContent": {"redactedContent": b"x"}}) is None
    assert writer.write({"reasoningContent": {"reasoningText": {"text": "x"}}}) is None


@pytest.mark.parametrize(("given", "sent"), [("jpg", "jpeg"), ("PNG", "png"), ("gif", "gif")])
def test_formats_are_spelled_as_converse_does(writer, given, sent):
    assert writer.write({"image": {"format": given, "source": {"bytes": b"x"}}})["image"]["format"] == sent


def test_a_location_of_s3_may_be_given_in_another_form(writer):
    source = {"location": {"type": "s3", "uri": "s3://b/k", "bucketOwner": "123456789012"}}

    written = writer.write({"video": {"format": "3gp", "source": source}})

    assert written["video"] == {
        "format": "three_gp",
        "source": {"s3Location": {"uri": "s3://b/k", "bucketOwner": "123456789012"}},
    }


def test_names_of_documents_are_legal_and_one_of_a_kind(writer):
    def name(given):
        return writer.write({"document": {"format": "pdf", "name": given, "source": {"bytes": b"x"}}})["document"][
            "name"
        ]

    assert name("a_b/c.pdf") == "a-b-c-pdf"
    assert name("a_b/c.pdf") == "a-b-c-pdf (2)"
    assert name("two   spaces") == "two spaces"
    assert name("") == "document"
    assert len(name("x" * 500)) <= 204


@pytest.mark.parametrize("kind", ["image", "document", "video"])
def test_base64_text_in_the_place_of_bytes_is_refused(kind):
    writer = BlockWriter(with_status=True, with_reasoning=True)

    with pytest.raises(ModelRequestError, match="b64decode"):
        writer.write({kind: {"format": "png", "source": {"bytes": "AQ=="}}})


def test_document_names_that_are_too_long_stay_within_the_limit_when_they_repeat():
    writer = BlockWriter(with_status=True, with_reasoning=True)
    document = {"document": {"name": "n" * 300, "format": "txt", "source": {"bytes": b"x"}}}

    names = [writer.write(document)["document"]["name"] for _ in range(11)]

    assert len(set(names)) == 11
    assert max(map(len, names)) == 200
