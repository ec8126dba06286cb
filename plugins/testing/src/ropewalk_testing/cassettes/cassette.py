"""The model that records another, or plays what was recorded."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ropewalk_testing.cassettes.coding import decode, decode_error, encode, encode_error, encode_request
from ropewalk_testing.cassettes.drift import ABSENT, Comparison
from ropewalk_testing.cassettes.errors import AGAIN, CassetteDrift, CassetteError
from ropewalk_testing.cassettes.redaction import Redactor
from ropewalk_testing.cassettes.storage import Call, load, save

if TYPE_CHECKING:
    from ropewalk.model import Model, ModelRequest
    from ropewalk.types import StreamEvent

_MODEL: Final = ("model_id", "context_window", "supports_output_schema")


class Cassette:
    """A model for tests: records a real one, or plays the recording and needs neither network nor model.

    ```python
    agent = Agent(model=Cassette("weather.json", model=BedrockModel()))  # records
    agent = Agent(model=Cassette("weather.json"))  # plays
    ```

    A replayed call must bring the request that was recorded; otherwise `CassetteDrift` names the field that differs.
    Calls are taken in their order; of calls that ran side by side, whichever fits. The cassette does not count tokens,
    so that agents estimate in both modes alike.

    Args:
        path: The JSON file. It is written after each call, as a whole.
        model: The model to record, or a function that makes it; it is not called when a recording is played.
        record: Whether to record; by default, if a model is given.
        redact: Regular expressions; what they match in requests, events and errors is replaced, in both modes.
        secret_keys: More keys under which values are secret; see `Redactor` for those that are so anyway.
        ignore: Paths of the request that may differ, such as `system[0].text`; `[*]` is any item.

    Raises:
        MissingCassetteError: There is no recording to play.
        CassetteError: The file is torn or no cassette, or there is no model to record.

    Attributes:
        path: The file.
        recording: Whether it records.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        model: Model | Callable[[], Model] | None = None,
        record: bool | None = None,
        redact: Iterable[str | re.Pattern[str]] = (),
        secret_keys: Iterable[str] = (),
        ignore: Iterable[str] = (),
    ) -> None:
        self.path = Path(path)
        self.recording = (model is not None) if record is None else record
        self._redactor = Redactor(redact, secret_keys)
        self._comparison = Comparison(ignore)
        self._lock = threading.Lock()
        self._calls: list[Call] = []
        self._played: set[int] = set()
        self._model: Any = None
        if self.recording:
            self._model = _made(self.path, model)
            known = {name: getattr(self._model, name, None) for name in _MODEL}
            self._about = {name: self._redactor.value(encode(each)) for name, each in known.items() if each is not None}
        else:
            recording = load(self.path)
            self._about, self._calls = recording["model"], recording["calls"]

        self.model_id = str(self._about.get("model_id", "cassette"))
        self.context_window: int | None = self._about.get("context_window")
        self.supports_output_schema = self._about.get("supports_output_schema") is True

    def __repr__(self) -> str:
        """Says what it does."""
        done = len(self._calls) if self.recording else len(self._played)
        return f"<Cassette {self.path.name}: {done} calls {'recorded' if self.recording else 'played'}>"

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Streams the answer, the real one or the recorded one.

        Raises:
            CassetteDrift: The request is not the one that was recorded.
        """
        return self._record(request) if self.recording else self._play(request)

    def check_used_up(self) -> None:
        """Checks that every recorded call was made.

        Raises:
            CassetteDrift: One was not.
        """
        left = [] if self.recording else [place for place in range(len(self._calls)) if place not in self._played]
        if left:
            fact = f"it was recorded and not made: the recording has {len(self._calls)} calls. "
            raise CassetteDrift(self.path, left[0] + 1, "calls", len(self._calls), len(self._played), fact=fact)

    # -- recording -------------------------------------------------------------------------------------------------

    async def _record(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        call: Call = {"request": self._seen(request), "events": []}
        events: list[Any] = []
        with self._lock:
            self._calls.append(call)

        stream = self._model.stream(request)
        end = "closed"
        try:
            async for event in stream:
                events.append(encode(event))
                yield event

            end = "complete"
        except (GeneratorExit, asyncio.CancelledError):
            raise
        except Exception as error:
            end = "error"
            call["error"] = self._redactor.value(encode_error(error))
            raise
        finally:
            if hasattr(stream, "aclose"):
                await stream.aclose()

            if any("messageStop" in event for event in events if isinstance(event, dict)) and end == "closed":
                end = "complete"  # it had said all
            self._keep(call, events, end)

    def _keep(self, call: Call, events: list[Any], end: str) -> None:
        redacted = self._redactor.events(events)
        with self._lock:
            call["events"] = redacted
            call["end"] = end
            # Calls that still run are left out; the file is written again when they end.
            save(self.path, {"model": self._about, "calls": [each for each in self._calls if "end" in each]})

    # -- playing ---------------------------------------------------------------------------------------------------

    async def _play(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        number, call = self._take(self._seen(request))
        for event in call["events"]:
            yield decode(event)

        if call["end"] == "error":
            raise decode_error(call["error"])
        if call["end"] == "closed":
            fact = f"the recorded run stopped reading here, after {len(call['events'])} events, and this one goes on. "
            raise CassetteDrift(self.path, number, "end", "closed", "reading on", fact=fact)

    def _take(self, request: dict[str, Any]) -> tuple[int, Call]:
        with self._lock:
            left = [place for place in range(len(self._calls)) if place not in self._played]
            if not left:
                fact = f"the recording has {len(self._calls)} calls and this one is more. "
                raise CassetteDrift(
                    self.path, len(self._calls) + 1, "calls", len(self._calls), len(self._calls) + 1, fact=fact
                )

            for place in left:
                if self._comparison.first(self._calls[place]["request"], request) is None:
                    self._played.add(place)
                    return place + 1, self._calls[place]

            recorded = self._calls[left[0]]["request"]
            field, before, now = self._comparison.first(recorded, request) or ("", ABSENT, ABSENT)
            raise CassetteDrift(self.path, left[0] + 1, field, before, now)

    def _seen(self, request: ModelRequest) -> dict[str, Any]:
        seen: dict[str, Any] = self._redactor.value(encode_request(request))
        return seen


def _made(path: Path, model: Any) -> Any:
    if model is None:
        raise CassetteError(f"cassette {path} is to be recorded and has no model: {AGAIN}")

    made = model if hasattr(model, "stream") and not isinstance(model, type) else model() if callable(model) else model
    if not hasattr(made, "stream"):
        raise CassetteError(f"cassette {path}: {made!r} is no model: give one, or a function that makes one")

    return made
