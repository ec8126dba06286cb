"""Rules of a valid conversation, and what makes messages of streams, prompts and lists. No agent, no state."""
