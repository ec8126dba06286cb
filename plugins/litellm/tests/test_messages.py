from __future__ import annotations

from decimal import Decimal

import pytest

from ropewalk.kits.model_errors import ModelRequestError
from ropewalk_litellm.cache_points import Marks
from ropewalk_litellm.messages import chat_messages

PNG = {"image": {"format": "png", "source": {"bytes": b"\x01"}}}
PNG_PART = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AQ=="}}


def chat(*messages, system=()):
    return chat_messages(system, [{"role": role, "content": content} for role, content in messages], Marks())


def result(use_id, *content, status="success"):
    return {"toolResult": {"toolUseId": use_id, "status": status, "content": list(content)}}


def test_plain_texts_are_plain_strings():
    assert chat(("user", [{"text": "hi"}]), ("assistant", [{"text": "ho"}]), system=[{"text": "be kind"}]) == [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "ho"},
    ]


def test_several_texts_stay_parts():
    assert chat(("user", [{"text": "a"}, {"text": "b"}])) == [
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}
    ]


def test_a_tool_use_is_a_call_with_its_arguments_as_json():
    use = {"toolUseId": "T1", "name": "add", "input": {"a": 1, "wo": "Köln"}}

    assert chat(("assistant", [{"text": "I add."}, {"toolUse": use}])) == [
        {
            "role": "assistant",
            "content": "I add.",
            "tool_calls": [
                {"id": "T1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "wo": "Köln"}'}}
            ],
        }
    ]


def test_results_are_messages_of_their_own_before_the_users_text():
    sent = chat(
        ("user", [result("T1", {"text": "3"}), result("T2", {"json": {"b": [1]}}), {"text": "and now?"}]),
    )

    assert sent == [
        {"role": "tool", "tool_call_id": "T1", "content": "3"},
        {"role": "tool", "tool_call_id": "T2", "content": '{"b": [1]}'},
        {"role": "user", "content": "and now?"},
    ]


@pytest.mark.parametrize(
    ("content", "sent"),
    [
        ([{"text": "no such file"}], "Error: no such file"),
        ([{"text": "Error: no such file"}], "Error: no such file"),
        ([], "Error: [no content]"),
    ],
)
def test_a_failed_tool_says_so_once(content, sent):
    assert chat(("user", [result("T1", *content, status="error")]))[0]["content"] == sent


def test_an_empty_result_is_not_sent_empty():
    assert chat(("user", [result("T1", {"text": "  "})]))[0]["content"] == "[no content]"


def test_what_a_tool_shows_moves_to_a_user_message():
    sent = chat(("user", [result("T1", {"text": "a chart"}, PNG), {"text": "what is it?"}]))

    assert sent[0]["role"] == "tool"
    assert "a chart" in sent[0]["content"]
    assert sent[1] == {
        "role": "user",
        "content": [
            {"type": "text", "text": "[Shown by the tool call T1:]"},
            PNG_PART,
            {"type": "text", "text": "what is it?"},
        ],
    }


def test_images_and_files_are_data_addresses():
    document = {"document": {"format": "pdf", "name": "plan", "source": {"bytes": b"%PDF"}}}

    assert chat(("user", [PNG, document]))[0]["content"] == [
        PNG_PART,
        {"type": "file", "file": {"filename": "plan.pdf", "file_data": "data:application/pdf;base64,JVBERg=="}},
    ]


@pytest.mark.parametrize(
    "source",
    [{"bytes": "Grüße".encode()}, {"text": "Grüße"}, {"content": [{"text": "Grüße"}]}],
    ids=lambda s: next(iter(s)),
)
def test_documents_that_are_text_are_sent_as_text(source):
    (sent,) = chat(("user", [{"document": {"format": "md", "name": "notes", "source": source}}]))

    assert sent["content"] == "[Document notes]\nGrüße\n[End of document notes]"


def test_what_only_another_provider_can_fetch_is_refused():
    image = {"image": {"format": "png", "source": {"s3Location": {"uri": "s3://b/k"}}}}

    with pytest.raises(ModelRequestError, match="s3Location"):
        chat(("user", [image]))


def test_guarded_and_cited_texts_are_texts():
    sent = chat(
        ("user", [{"guardContent": {"text": {"text": "guarded"}}}]),
        ("assistant", [{"citationsContent": {"content": [{"text": "cited"}], "citations": []}}]),
    )

    assert [message["content"] for message in sent] == ["guarded", "cited"]


SIGNED = {"reasoningContent": {"reasoningText": {"text": "a", "signature": "S1"}}}
UNSIGNED = {"reasoningContent": {"reasoningText": {"text": "b"}}}
SILENT = {"reasoningContent": {"reasoningText": {"text": "", "signature": "S2"}}}
REDACTED = {"reasoningContent": {"redactedContent": b"\x01"}}
USE = {"toolUse": {"toolUseId": "T1", "name": "f", "input": {}}}


def test_signed_thinking_goes_back_as_it_came():
    (sent,) = chat(("assistant", [SIGNED, SILENT, REDACTED, {"text": "so"}]))

    assert sent == {
        "role": "assistant",
        "content": "so",
        "thinking_blocks": [
            {"type": "thinking", "thinking": "a", "signature": "S1"},
            {"type": "thinking", "thinking": "", "signature": "S2"},
            {"type": "redacted_thinking", "data": "AQ=="},
        ],
    }


def test_unsigned_thinking_goes_back_only_with_tool_calls():
    (plain,) = chat(("assistant", [UNSIGNED, {"text": "so"}]))
    (asking,) = chat(("assistant", [UNSIGNED, USE]))

    assert plain == {"role": "assistant", "content": "so"}
    assert asking["reasoning_content"] == "b"
    assert "thinking_blocks" not in asking


def test_an_assistant_message_is_never_empty():
    assert chat(("assistant", [UNSIGNED]))[0]["content"] == "[blank text]"


BLANKS = [
    {"text": " \n"},
    {"guardContent": {"text": {"text": ""}}},
    {"citationsContent": {"content": [{"text": ""}], "citations": []}},
    {"cachePoint": {"type": "default"}},
]


@pytest.mark.parametrize("block", BLANKS, ids=str)
@pytest.mark.parametrize("role", ["user", "assistant"])
def test_a_message_never_has_a_blank_text_or_no_content(role, block):
    assert chat((role, [block])) == [{"role": role, "content": "[blank text]"}]
    assert chat((role, [{"text": "hi"}, block])) == [{"role": role, "content": "hi"}]


def test_a_blank_system_prompt_is_none():
    assert chat(("user", [{"text": "hi"}]), system=[{"text": " "}]) == [{"role": "user", "content": "hi"}]


@pytest.mark.parametrize("kind", ["image", "document", "video"])
def test_base64_text_in_the_place_of_bytes_is_refused(kind):
    with pytest.raises(ModelRequestError, match=f"the {kind} 'x' has str as its bytes.*b64decode"):
        chat(("user", [{kind: {"format": "png", "name": "x", "source": {"bytes": "AQ=="}}}]))


def test_a_guarded_image_is_an_image():
    assert chat(("user", [{"guardContent": PNG}])) == [{"role": "user", "content": [PNG_PART]}]


def test_arguments_that_are_no_json_are_made_it():
    use = {"toolUseId": "T1", "name": "add", "input": {"a": Decimal("1.5"), "b": float("nan")}}
    (message,) = chat(("assistant", [{"toolUse": use}]))

    assert message["tool_calls"][0]["function"]["arguments"] == '{"a": "1.5", "b": null}'
