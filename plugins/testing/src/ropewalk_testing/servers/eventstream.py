"""The framing of `application/vnd.amazon.eventstream`.

A frame is: total length, length of the headers, CRC32 of these eight bytes, headers, payload, CRC32 of all before it;
numbers are big-endian, of 32 bits (https://smithy.io/2.0/aws/amazon-eventstream.html).
"""

from __future__ import annotations

import struct
from binascii import crc32
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ropewalk_testing.errors import ScriptError
from ropewalk_testing.servers.wire import json_bytes

_STRING: Final = 7  # the type of a header's value; the other types do not occur in these streams
_PRELUDE: Final = 12
_OVERHEAD: Final = 16


def frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    """One frame, with both checksums."""
    head = b"".join(_header(name, value) for name, value in headers.items())
    lengths = struct.pack(">II", _OVERHEAD + len(head) + len(payload), len(head))
    most = lengths + struct.pack(">I", crc32(lengths)) + head + payload
    return most + struct.pack(">I", crc32(most))


def event_frame(event_type: str, payload: Any) -> bytes:
    """The frame of an event; the payload is JSON, or bytes as they are."""
    headers = {":event-type": event_type, ":content-type": "application/json", ":message-type": "event"}
    return frame(headers, payload if isinstance(payload, bytes) else json_bytes(payload))


def exception_frame(exception_type: str, message: str) -> bytes:
    """The frame of a modelled exception, such as `throttlingException`."""
    headers = {":exception-type": exception_type, ":content-type": "application/json", ":message-type": "exception"}
    return frame(headers, json_bytes({"message": message}))


def error_frame(code: str, message: str) -> bytes:
    """The frame of an error that the service's model does not know."""
    return frame({":message-type": "error", ":error-code": code, ":error-message": message}, b"")


def frames(data: bytes) -> Iterator[tuple[dict[str, str], bytes]]:
    """Takes a stream apart: headers and payload of each frame.

    Raises:
        ScriptError: It is torn, or a checksum is wrong.
    """
    at = 0
    while at < len(data):
        if len(data) - at < _OVERHEAD:
            raise ScriptError(f"the event stream is torn at byte {at}: {len(data) - at} bytes are no frame")

        total, head, crc = struct.unpack_from(">III", data, at)
        whole = data[at : at + total]
        if crc != crc32(data[at : at + 8]) or len(whole) < total:
            raise ScriptError(f"the frame at byte {at} of the event stream is torn, or its first checksum is wrong")
        if struct.unpack(">I", whole[-4:])[0] != crc32(whole[:-4]):
            raise ScriptError(f"the frame at byte {at} of the event stream has a wrong second checksum")

        yield dict(_headers(whole[_PRELUDE : _PRELUDE + head])), whole[_PRELUDE + head : -4]
        at += total


def _header(name: str, value: str) -> bytes:
    key, text = name.encode(), value.encode()
    return bytes([len(key)]) + key + bytes([_STRING]) + struct.pack(">H", len(text)) + text


def _headers(data: bytes) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(data):
        end = at + 1 + data[at]
        (length,) = struct.unpack_from(">H", data, end + 1)
        yield data[at + 1 : end].decode(), data[end + 3 : end + 3 + length].decode()
        at = end + 3 + length
