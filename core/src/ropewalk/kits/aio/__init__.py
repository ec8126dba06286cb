"""asyncio's missing parts: loops for synchronous callers, threads, contexts, cancelling, a channel, the clock."""
