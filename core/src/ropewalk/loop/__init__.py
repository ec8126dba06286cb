"""The agent loop: model, tools, repeat. One file per step, from `invocation` to `model_step` and `tool_step`."""
