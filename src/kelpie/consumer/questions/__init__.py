"""One file for each question; see question.py."""
