"""Where observations come from: one module per kind of evidence. Each fills bronze tables."""
