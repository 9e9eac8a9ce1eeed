"""The words that every part of Kelpie uses."""
