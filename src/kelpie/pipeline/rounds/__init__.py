"""Tables that follow step by step: a round reads what is new, and what the last round left for it."""
