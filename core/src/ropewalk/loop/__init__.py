"""The agent loop: model, tools, repeat. One file per step, `invocation` outermost, `model_step` and `tool_step` innermost."""
