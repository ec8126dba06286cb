"""What the calls of hooks carry and return."""
