"""The run log: its records, the state that they add up to, and what a store of them is."""
