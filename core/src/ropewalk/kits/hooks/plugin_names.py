"""The public names that plugins bring, for type checkers only: nothing is imported at run time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ropewalk_bedrock import BedrockModel as BedrockModel
    from ropewalk_checkpoint import Checkpoint as Checkpoint
    from ropewalk_checkpoint import CheckpointException as CheckpointException
    from ropewalk_concurrency import ConcurrentInvocationMode as ConcurrentInvocationMode
    from ropewalk_concurrency import IdempotencyAbortedError as IdempotencyAbortedError
    from ropewalk_console import CompositeCallbackHandler as CompositeCallbackHandler
    from ropewalk_console import PrintingCallbackHandler as PrintingCallbackHandler
    from ropewalk_console import null_callback_handler as null_callback_handler
    from ropewalk_executor import ConcurrentToolExecutor as ConcurrentToolExecutor
    from ropewalk_executor import SequentialToolExecutor as SequentialToolExecutor
    from ropewalk_hooks import AfterInvocationEvent as AfterInvocationEvent
    from ropewalk_hooks import AfterModelCallEvent as AfterModelCallEvent
    from ropewalk_hooks import AfterToolCallEvent as AfterToolCallEvent
    from ropewalk_hooks import AfterToolsEvent as AfterToolsEvent
    from ropewalk_hooks import AgentInitializedEvent as AgentInitializedEvent
    from ropewalk_hooks import BeforeInvocationEvent as BeforeInvocationEvent
    from ropewalk_hooks import BeforeModelCallEvent as BeforeModelCallEvent
    from ropewalk_hooks import BeforeToolCallEvent as BeforeToolCallEvent
    from ropewalk_hooks import BeforeToolsEvent as BeforeToolsEvent
    from ropewalk_hooks import HookCallback as HookCallback
    from ropewalk_hooks import HookEvent as HookEvent
    from ropewalk_hooks import HookOrder as HookOrder
    from ropewalk_hooks import HookProvider as HookProvider
    from ropewalk_hooks import HookRegistry as HookRegistry
    from ropewalk_hooks import MessageAddedEvent as MessageAddedEvent
    from ropewalk_hooks import ModelStopResponse as ModelStopResponse
    from ropewalk_hooks import Plugin as Plugin
    from ropewalk_hooks import hook as hook
    from ropewalk_interventions import Confirm as Confirm
    from ropewalk_interventions import Deny as Deny
    from ropewalk_interventions import Guide as Guide
    from ropewalk_interventions import HumanInTheLoop as HumanInTheLoop
    from ropewalk_interventions import InterventionHandler as InterventionHandler
    from ropewalk_interventions import Proceed as Proceed
    from ropewalk_interventions import Transform as Transform
    from ropewalk_limits import Budget as Budget
    from ropewalk_limits import Limits as Limits
    from ropewalk_litellm import LiteLLMModel as LiteLLMModel
    from ropewalk_local import LocalModel as LocalModel
    from ropewalk_offload import ContextOffloader as ContextOffloader
    from ropewalk_retry import ModelRetryStrategy as ModelRetryStrategy
    from ropewalk_session_file import FileSessionManager as FileSessionManager
    from ropewalk_session_file import SessionManager as SessionManager
    from ropewalk_session_s3 import S3SessionManager as S3SessionManager
    from ropewalk_session_sql import SQLSessionManager as SQLSessionManager
    from ropewalk_structured import StructuredOutputException as StructuredOutputException
    from ropewalk_summarize import SummarizingConversationManager as SummarizingConversationManager
    from ropewalk_tools import ToolContext as ToolContext
    from ropewalk_tools import ToolProvider as ToolProvider
    from ropewalk_tools import tool as tool
    from ropewalk_window import ConversationManager as ConversationManager
    from ropewalk_window import NullConversationManager as NullConversationManager
    from ropewalk_window import SlidingWindowConversationManager as SlidingWindowConversationManager
