"""The offsets topic of a live cluster into bronze tables."""
