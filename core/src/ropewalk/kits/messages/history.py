"""The history of one agent. Nobody else writes to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import ref

from ropewalk.errors import HistoryError
from ropewalk.kits.aio.seam import current_seam
from ropewalk.kits.calls.edits import HistoryEdit
from ropewalk.kits.log.records import Journal
from ropewalk.kits.messages.chain import Chain
from ropewalk.kits.messages.differences import Mark, added, redacted, unchanged_ends
from ropewalk.kits.messages.message_list import MessageList
from ropewalk.kits.messages.repair import joined, repaired
from ropewalk.kits.messages.rules import (
    OUTCOME_UNKNOWN,
    closing_results,
    is_legal_id,
    sendable,
    tool_uses,
)
from ropewalk.kits.messages.tokens import TokenCount
from ropewalk.kits.messages.view import HistoryView, Source
from ropewalk.types import ContentBlock, Message, ToolUse


class History:
    """Messages, their ids, and the tool uses that still wait for a result.

    Attributes:
        messages: The conversation, the very list that `agent.messages` is.
        ids: The id of each message; ids count upwards and are never used again.
        tokens: Counts the conversation's tokens.
        open_uses: Tool uses of the last message without a result, by id; only a run or a suspension leaves any.
        journal: Collects records while somebody writes them; None otherwise.
        version: Counts splices and rewrites, so that estimates know when to start anew.
    """

    __slots__ = (
        "_blocks",
        "_born",
        "_busy",
        "_chain",
        "_fixes",
        "_held",
        "_next_id",
        "_seen",
        "_source",
        "ids",
        "journal",
        "messages",
        "open_uses",
        "tokens",
        "version",
    )

    def __init__(self, messages: Sequence[Message] | None = None) -> None:
        self.messages = MessageList()
        self.ids: list[int] = []
        self.open_uses: dict[str, ToolUse] = {}
        self.journal: Journal | None = None
        self.version = 0
        self.tokens = TokenCount()
        self._next_id = 0
        self._chain = Chain()
        self._held = self._busy = False
        self._born = 0
        self._blocks: list[list[Message]] = []
        self._seen: set[str] | None = None
        self._fixes: dict[int, Message] = {}
        self._source: ref[Source] | None = None
        if messages:
            self._rewrite(repaired(list(messages)))

    # -- reading ---------------------------------------------------------------------------------------------------

    def view(self) -> HistoryView:
        """What a model may be sent, read-only and independent of later changes."""
        source = self._source() if self._source is not None else None
        if source is None:
            source = Source(self.messages, self._fixes)
            self._source = ref(source)

        return HistoryView(source)

    def free_id(self, wanted: object, taken: set[str]) -> str:
        """`wanted` when it is a legal tool-use id that neither the history nor `taken` has, else a new one."""
        seen = self._seen
        if seen is None:
            seen = self._seen = {
                u["toolUseId"] for m in self.messages if m["role"] == "assistant" for u in tool_uses(m)
            }

        if is_legal_id(wanted) and wanted not in seen and wanted not in taken:
            return str(wanted)

        return current_seam().new_id("tooluse_")

    def digest(self) -> str:
        """The chained hash of the conversation; each message is hashed once."""
        if self.messages.before_edit is not None:  # the caller's edits are not taken over yet
            return Chain().digest(self.messages)

        return self._chain.digest(self.messages)

    # -- writing during a run --------------------------------------------------------------------------------------

    def add_user(
        self, blocks: Sequence[ContentBlock], metadata: Message | None = None, logged: Sequence[Any] | None = None
    ) -> None:
        """Adds user content: a new message, or merged into the last one when that is the user's too.

        Args:
            blocks: The content.
            metadata: A message whose other keys a new message takes.
            logged: What the log keeps of a new message in the blocks' place, when it has parts of them already.
        """
        messages = self.messages
        last = messages[-1] if messages else None
        for block in blocks:
            if "toolResult" in block:
                self.open_uses.pop(block["toolResult"]["toolUseId"], None)

        if last is not None and last["role"] == "user":
            self._replace_last(joined(last, metadata, blocks))
            return

        content = list(blocks)
        message: Message = (
            {"role": "user", "content": content} if metadata is None else {**metadata, "content": content}
        )
        self._append(message, message if logged is None else {**message, "content": list(logged)})

    def add_assistant(self, message: Message) -> None:
        """Adds the model's message: a new one, or as the continuation of an assistant message that stands last."""
        messages = self.messages
        last = messages[-1] if messages else None
        if last is not None and last["role"] == "assistant":
            message = joined(last, message, message["content"])
            self._replace_last(message)
        else:
            self._append(message)

        for block in message["content"]:
            use = block.get("toolUse")
            if use is not None:
                self.open_uses[use["toolUseId"]] = use
                if self._seen is not None:
                    self._seen.add(use["toolUseId"])

    def add_input(self, messages: Sequence[Message]) -> Mark:
        """Adds a prompt's messages, by the same rules, and answers open tool uses that they leave open.

        Returns:
            Where to roll back to when the run ends before an answer. The answers to open uses stay.
        """
        if any(m["role"] == "assistant" or any("toolResult" in b for b in m["content"]) for m in messages):
            return self._add_conversation(messages)

        self.close_open_uses(OUTCOME_UNKNOWN)
        mark = self.mark()
        for message in messages:
            self.add_user(message["content"], message)

        return mark

    def _add_conversation(self, messages: Sequence[Message]) -> Mark:
        mark = self.mark()
        before = list(self.messages)
        answered = bool(self.open_uses)
        after = repaired([*before, *messages], "the prompt", [*before, *messages])
        self._rewrite(after, "caller", "the prompt holds a conversation")
        if answered:
            results: list[ContentBlock] = [b for b in self.messages[len(before)]["content"] if "toolResult" in b]
            mark = Mark(len(before) + 1, self.messages[len(before) - 1], {"role": "user", "content": results})

        self.close_open_uses(OUTCOME_UNKNOWN)
        return mark

    def close_open_uses(self, text: str) -> None:
        """Answers every open tool use with an error result of that text."""
        if self.open_uses:
            self.add_user(closing_results(list(self.open_uses.values()), text))

    def redact_last_input(self, text: str) -> None:
        """Replaces the texts of the last user message; tool results stay, with their texts replaced."""
        index = len(self.messages) - 1
        while index >= 0 and self.messages[index]["role"] != "user":
            index -= 1

        if index >= 0:
            message = self.messages[index]
            if self.journal:
                uses = [b["toolResult"]["toolUseId"] for b in message["content"] if "toolResult" in b]
                self.journal.add("redacted", {"id": self.ids[index], "uses": uses})

            self._put(index, {**message, "content": redacted(message["content"], text)})

    # -- undoing and splicing --------------------------------------------------------------------------------------

    def mark(self) -> Mark:
        """Remembers the tail."""
        return Mark.of(self.messages)

    def rollback(self, mark: Mark) -> None:
        """Takes back what was appended or merged at the tail since `mark`; nothing when more has changed."""
        same = len(self.messages) == mark.length and (mark.length == 0 or self.messages[-1] is mark.last)
        if same or not mark.is_below(self.messages):
            return

        if mark.last is not None and self.messages[mark.length - 1] is not mark.last:
            self._put(mark.length - 1, mark.last)

        self._detach_views()
        gone = len(self.ids) - mark.length
        list.__delitem__(self.messages, slice(mark.length, None))
        del self.ids[mark.length :]
        self._fixes = {i: m for i, m in self._fixes.items() if i < mark.length}
        self._chain.cut(mark.length)
        self.open_uses.clear()
        self.version += 1
        if self.journal and gone:
            self._note_splice(mark.length, gone, 0, "kernel", "the run ended before an answer")

    def splice(self, edit: HistoryEdit, plugin: str) -> None:
        """Carries out one edit and repairs what it left invalid.

        Raises:
            HistoryError: The edit names a message that is not there, or inserts something that is no message.
        """
        try:
            start, end = self.ids.index(edit.first), self.ids.index(edit.last) + 1
        except ValueError:
            raise HistoryError(
                f"plugin {plugin!r} edits messages {edit.first} to {edit.last}, which are not in the history: "
                "use ids of the request"
            ) from None

        if end <= start:
            raise HistoryError(
                f"plugin {plugin!r} edits messages {edit.first} to {edit.last}, "
                "which stand in the other order: swap them"
            )

        after = [*self.messages[:start], *edit.messages, *self.messages[end:]]
        fixed = repaired(after, f"the history as edited by plugin {plugin!r}", self.messages)
        self._rewrite(fixed, plugin, edit.reason)

    # -- branches --------------------------------------------------------------------------------------------------

    def branch(self) -> History:
        """A history of its own that starts at the last answer in this one: what the run on it does is left out."""
        kept = list(self.messages)
        while kept and (kept[-1]["role"] == "user" or tool_uses(kept[-1])):
            kept.pop()

        other = History()
        other._rewrite(kept)
        other._born = other._next_id
        return other

    def append_block(self, branch: History, base: Sequence[Message], journal: Journal | None) -> None:
        """Appends what a branch has added to its `base`; when a run holds this history, as soon as that ends."""
        block = added(base, branch._born, branch.ids, branch.messages)
        if self._busy or self._held:
            self._blocks.append(block)
        elif block:
            self.journal = journal
            self._add_conversation(block)
            self.journal = None

    # -- runs and the caller's edits -------------------------------------------------------------------------------

    def begin_run(self, journal: Journal | None) -> None:
        """Takes over the caller's edits and locks the list.

        Raises:
            HistoryError: The caller put something into `agent.messages` that is no message; nothing is changed.
        """
        self.adopt_edits("caller", "agent.messages was edited", journal)
        self.journal = journal  # not before: a run that is refused must leave nothing that leads to its agent
        self.messages.locked = self._busy = True

    def end_run(self, *, paused: bool) -> bool:
        """Unlocks the list, and appends what branches have left meanwhile; behind a pause they wait on.

        Returns:
            Whether something was appended.
        """
        self._detach_views()
        self.messages.locked = self._busy = False
        self._held = paused
        blocks: list[list[Message]] = []
        if not paused:
            blocks, self._blocks = self._blocks, []

        for block in blocks:
            self._add_conversation(block)

        self.journal = None
        return bool(blocks)

    def adopt_edits(self, plugin: str, reason: str, journal: Journal | None = None) -> bool:
        """Takes over what was done to the list, repaired; False when nothing was.

        Raises:
            HistoryError: Something in the list is no message; nothing is changed.
        """
        if (before := self.messages.before_edit) is None:
            return False

        fixed = repaired(self.messages, "agent.messages", before)
        self.journal = journal or self.journal
        list.__setitem__(self.messages, slice(None), before)
        self.messages.before_edit = None
        self._rewrite(fixed, plugin, reason)
        return True

    # -- the only places that write --------------------------------------------------------------------------------

    def _append(self, message: Message, logged: Message | None = None) -> None:
        list.append(self.messages, message)
        self.ids.append(self._next_id)
        self._next_id += 1
        fixed = sendable(message)
        if fixed is not message:
            self._fixes[len(self.messages) - 1] = fixed

        if self.journal:
            self.journal.add("message_appended", {"id": self.ids[-1], "message": logged or message})

    def _replace_last(self, message: Message) -> None:
        self._put(len(self.messages) - 1, message)

    def _detach_views(self) -> None:
        source = self._source() if self._source is not None else None
        if source is not None:
            source.detach()

        self._source = None

    def _put(self, index: int, message: Message) -> None:
        self._detach_views()
        list.__setitem__(self.messages, index, message)
        self._chain.cut(index)
        self._fixes.pop(index, None)
        fixed = sendable(message)
        if fixed is not message:
            self._fixes[index] = fixed

        if self.journal:
            self.journal.add("message_replaced", {"id": self.ids[index], "message": message})

    def _rewrite(self, messages: list[Message], plugin: str = "kernel", reason: str = "") -> None:
        """Puts other messages in place; those that are the same objects as before keep their ids."""
        old = list(self.messages)
        known = {id(m): i for m, i in zip(old, self.ids, strict=False)}
        ids: list[int] = []
        for message in messages:
            number = known.pop(id(message), None)
            if number is None:
                number, self._next_id = self._next_id, self._next_id + 1

            ids.append(number)

        self._detach_views()
        fresh = list(messages)
        before, self.ids = self.ids, ids
        list.__setitem__(self.messages, slice(None), fresh)
        self.version += 1
        self._chain.cut(0)
        self._seen = None
        self._fixes = {i: fixed for i, m in enumerate(fresh) if (fixed := sendable(m)) is not m}
        self._find_open_uses()
        if self.journal:
            at, end = unchanged_ends(old, fresh, before, ids)
            self._note_splice(at, len(before) - end - at, len(ids) - end - at, plugin, reason)

    def _find_open_uses(self) -> None:
        last = self.messages[-1] if self.messages else None
        self.open_uses = {u["toolUseId"]: u for u in tool_uses(last)} if last and last["role"] == "assistant" else {}

    def _note_splice(self, at: int, gone: int, come: int, plugin: str, reason: str) -> None:
        journal = self.journal
        if journal is not None and (gone or come):
            data = {"at": at, "gone": gone, "ids": self.ids[at : at + come], "messages": self.messages[at : at + come]}
            journal.add("history_spliced", {**data, "plugin": plugin, "reason": reason})

    @classmethod
    def restored(cls, messages: Sequence[Message], ids: Sequence[int], next_id: int) -> History:
        """A history as a log has it."""
        self = cls()
        list.extend(self.messages, messages)
        self.ids, self._next_id = list(ids), next_id
        self._fixes = {i: fixed for i, m in enumerate(messages) if (fixed := sendable(m)) is not m}
        self._find_open_uses()
        return self
