"""Images, documents and videos in OpenAI's shape."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

from ropewalk.kits.model_errors import model_error

_PLAIN: Final = {"csv": "text/csv", "html": "text/html", "md": "text/markdown", "txt": "text/plain"}
_TYPES: Final = {
    "pdf": "application/pdf",
    "doc": "application/msword",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xls": "application/vnd.ms-excel",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "jpg": "image/jpeg",
    "mov": "video/quicktime",
    "mkv": "video/x-matroska",
    "three_gp": "video/3gpp",
    "wmv": "video/x-ms-wmv",
    **_PLAIN,
}
MEDIA: Final = ("image", "document", "video")


def media_part(block: Mapping[str, Any]) -> dict[str, Any] | None:
    """The content part for an image, a document or a video; None when the block is none of them.

    Raises:
        ModelRequestError: It stands where only another provider can fetch it.
    """
    for kind in MEDIA:
        if kind in block:
            return _part(kind, block[kind])

    return None


def _part(kind: str, media: Mapping[str, Any]) -> dict[str, Any]:
    source = media.get("source") or {}
    name = str(media.get("name") or kind)
    form = str(media.get("format") or "").lower()
    if "text" in source or "content" in source:
        pieces = [source["text"]] if "text" in source else [str(p.get("text", "")) for p in source["content"]]
        return _document_text(name, "\n".join(pieces))

    if "bytes" in source:
        data = _bytes(kind, name, source["bytes"])
        if kind == "document" and form in _PLAIN:  # files are PDF to most providers, and text is text to all
            return _document_text(name, data.decode("utf-8", "replace"))

        address = f"data:{_TYPES.get(form, f'{kind}/{form}')};base64,{base64.b64encode(data).decode()}"
    elif isinstance(source.get("url"), str):
        address = source["url"]
    else:
        where = ", ".join(map(str, source)) or "nothing"
        raise model_error(
            "bad_request",
            f"the {kind} {name!r} has the source {where}: give bytes, a url or a text",
            provider="litellm",
        )

    if kind == "image":
        return {"type": "image_url", "image_url": {"url": address}}

    file = {"file_data": address} if address.startswith("data:") else {"file_id": address}
    filename = f"{name}.{form}" if form and not name.endswith(f".{form}") else name
    return {"type": "file", "file": {"filename": filename, **file}}


def _bytes(kind: str, name: str, data: Any) -> bytes:
    if not isinstance(data, bytes | bytearray | memoryview):
        raise model_error(
            "bad_request",
            f"the {kind} {name!r} has {type(data).__name__} as its bytes: give bytes, which b64decode makes of it",
            provider="litellm",
        )

    return bytes(data)


def _document_text(name: str, text: str) -> dict[str, Any]:
    return {"type": "text", "text": f"[Document {name}]\n{text}\n[End of document {name}]"}
