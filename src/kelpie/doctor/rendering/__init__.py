"""A diagnosis as text for people (`terminal`) and as JSON for programs (`json`)."""
