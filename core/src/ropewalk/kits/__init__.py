"""What the kernel stands on and what plugins share: nothing in here knows the agent, its run or the loop.

* `hooks`: finding, checking, ordering and calling plugins.
* `messages`: rules of a valid conversation, and the assembly of a stream into a message; functions of messages alone.
* `aio`: event loops for synchronous callers, worker threads, cancellation, a channel, the clock.
* `model_errors`: what went wrong with a model call, whichever provider reported it.
* `json_values`: strict JSON of any value.
"""
