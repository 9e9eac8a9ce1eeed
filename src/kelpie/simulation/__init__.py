"""What simulators share: a virtual clock, and where chance comes from."""
