"""Delta tables in a folder: their files, their logs, and what makes a batch count once."""
