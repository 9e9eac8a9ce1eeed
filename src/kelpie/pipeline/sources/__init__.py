"""Evidence into bronze tables: one package per kind of source."""
