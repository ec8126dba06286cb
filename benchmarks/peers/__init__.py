"""One driver per framework, and what each needs installed."""
