"""What the plugins of this repository bring for each role keeps what everybody in that role keeps."""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import ClassVar

import pytest

from ropewalk import (
    Agent,
    ConcurrentToolExecutor,
    Deny,
    InterventionHandler,
    ModelRetryStrategy,
    NullConversationManager,
    Proceed,
    SequentialToolExecutor,
    SlidingWindowConversationManager,
    SummarizingConversationManager,
    ToolProvider,
    hookimpl,
    tool,
)
from ropewalk.kits.calls.verdicts import Refuse
from ropewalk.kits.context.folder_storage import FolderStorage
from ropewalk.kits.context.sandbox_storage import SandboxStorage
from ropewalk.kits.context.storage import MemoryStorage
from ropewalk_interventions.plugin import HandlersPlugin
from ropewalk_subagents.agent_tool import AgentTool
from ropewalk_testing import (
    ContextConformance,
    ExecutorConformance,
    GuardConformance,
    RetryConformance,
    ScriptedModel,
    StorageConformance,
    ToolConformance,
    ToolProviderConformance,
    turn,
)
from ropewalk_tools.loading import tools_of_file

# -- tools -------------------------------------------------------------------------------------------------------------


class TestFunction(ToolConformance):
    input: ClassVar = {"city": "Bergen"}
    wrong: ClassVar = {"city": ["Bergen"]}

    @pytest.fixture
    def tool(self):
        @tool
        def weather(city: str) -> str:
            """Tells the weather."""
            return f"rain in {city}"

        return weather


class TestAsyncFunction(TestFunction):
    slow: ClassVar = {"city": "far away"}

    @pytest.fixture
    def tool(self):
        @tool
        async def weather(city: str) -> dict[str, str]:
            """Tells the weather."""
            if city == "far away":
                await asyncio.Event().wait()

            return {"city": city}

        return weather


class TestSharedResult(TestFunction):
    wrong = None

    @pytest.fixture
    def tool(self):
        shared = {"status": "success", "content": [{"text": "rain"}, {"json": {"wind": [1, 2]}}]}

        @tool
        def weather(city: str) -> dict:
            """Tells the weather."""
            return shared

        return weather


class TestModule(TestFunction):
    wrong = None  # a module checks its input by itself

    @pytest.fixture
    def tool(self, tmp_path):
        (tmp_path / "weather.py").write_text(
            'TOOL_SPEC = {"name": "weather", "description": "W.", "inputSchema": {"json": {"type": "object"}}}\n'
            'RESULT = {"status": "success", "content": [{"text": "rain"}]}\n'
            "def weather(tool, **kwargs):\n    return RESULT\n"
        )
        return tools_of_file(tmp_path / "weather.py", None)[0]


class TestAgentAsTool(ToolConformance):
    input: ClassVar = {"input": "Say hello."}
    wrong: ClassVar = {"input": 3}
    slow: ClassVar = {"input": "Think."}

    @pytest.fixture
    def tool(self):
        def answer(request):
            return turn("hm", stall=True) if "Think." in str(request.messages) else "hello"

        yield AgentTool(Agent(model=(model := ScriptedModel(answer)), name="helper", callback_handler=None))
        model.release()


class TestProvider(ToolProviderConformance):
    call = ("count", {"word": "abc"})

    @pytest.fixture
    def provider(self):
        class Provider(ToolProvider):
            def __init__(self):
                self.consumers = set()
                self.opened = False

            async def load_tools(self, **kwargs):
                self.opened = True

                @tool
                def count(word: str) -> int:
                    """Counts letters."""
                    if not self.opened:
                        raise RuntimeError("closed")

                    return len(word)

                return [count]

            def add_consumer(self, consumer_id, **kwargs):
                self.consumers.add(consumer_id)

            def remove_consumer(self, consumer_id, **kwargs):
                self.consumers.discard(consumer_id)
                self.opened = self.opened and bool(self.consumers)

        return Provider()

    def is_open(self, provider):
        return provider.opened


# -- executors, strategies ---------------------------------------------------------------------------------------------


class TestConcurrentExecutor(ExecutorConformance):
    def executor(self):
        return ConcurrentToolExecutor()


class TestLimitedExecutor(ExecutorConformance):
    most = 2

    def executor(self):
        return ConcurrentToolExecutor(max_concurrency=2)


class TestSequentialExecutor(ExecutorConformance):
    at_once = False

    def executor(self):
        return SequentialToolExecutor()


class TestRetryStrategy(RetryConformance):
    def strategy(self):
        return ModelRetryStrategy()


# -- managers ----------------------------------------------------------------------------------------------------------


class TestSlidingWindow(ContextConformance):
    keeps_task = True

    def manager(self):
        return SlidingWindowConversationManager(window_size=10)


class TestSummarizing(ContextConformance):
    def manager(self):
        return SummarizingConversationManager(preserve_recent_messages=4)


class TestNoManager(ContextConformance):
    reduces = False

    def manager(self):
        return NullConversationManager()


class TestObjectWithTwoMethods(ContextConformance):
    keeps_pins = False

    def manager(self):
        class Halves:
            def apply_management(self, agent, **kwargs):
                pass

            def reduce_context(self, agent, e=None, **kwargs):
                if len(agent.messages) < 3:
                    raise e

                del agent.messages[: len(agent.messages) // 2]

        return Halves()


# -- guards ------------------------------------------------------------------------------------------------------------


class TestPolicy(GuardConformance):
    denied_call = ("delete", {"path": "/"})
    denied_input = "my password is 1234"
    denied_answer = "the password is 1234"
    denied_result = "password: 1234"

    def guard(self):
        class Guard:
            name = "no-passwords"
            tier = "policy"

            @hookimpl
            async def intervene(self, moment, subject):
                if moment == "before_tool_call":
                    return Refuse("no") if subject.tool.tool_name == "delete" else None

                shown = getattr(subject, "messages", None) or getattr(subject, "message", None) or subject
                return Refuse("no") if "1234" in str(list(shown) if isinstance(shown, tuple) else shown) else None

        return Guard()


class TestHandler(GuardConformance):
    denied_call = ("delete", {"path": "/"})

    def guard(self):
        class NoDeleting(InterventionHandler):
            name = "no-deleting"

            def before_tool_call(self, event):
                return Deny(reason="no") if event.selected_tool.tool_name == "delete" else Proceed()

        return HandlersPlugin((NoDeleting(),), 3)


# -- storages ----------------------------------------------------------------------------------------------------------


class TestMemoryStorage(StorageConformance):
    @pytest.fixture
    def storage(self):
        return MemoryStorage()

    @contextlib.contextmanager
    def full(self, storage):
        storage._most = storage._size
        yield
        storage._most = None


class TestFolderStorage(StorageConformance):
    @pytest.fixture
    def storage(self, tmp_path):
        return FolderStorage(tmp_path / "context")

    def reopened(self, storage):
        return FolderStorage(storage.folder)

    def damage(self, storage, key):
        for path in sorted(storage.folder.rglob("*")):
            if path.is_file():
                os.truncate(path, path.stat().st_size // 2)


class TestSandboxStorage(StorageConformance):
    @pytest.fixture
    def storage(self, tmp_path):
        return SandboxStorage(Sandbox())

    def reopened(self, storage):
        return SandboxStorage(storage._sandbox)

    def damage(self, storage, key):
        files = storage._sandbox.files
        for path, data in list(files.items()):
            files[path] = data[: len(data) // 2]


class Sandbox:
    """Files in memory."""

    def __init__(self):
        self.files = {}

    def write_file(self, path, data):
        self.files[path] = bytes(data)

    def read_file(self, path):
        try:
            return self.files[path]
        except KeyError:
            raise FileNotFoundError(path) from None

    def remove_file(self, path):
        del self.files[path]

    def list_files(self, folder):
        return [path.rpartition("/")[2] for path in self.files if path.startswith(f"{folder}/")]
