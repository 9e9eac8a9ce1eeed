"""Repairs on pages: plans are made, shown, confirmed, applied in the background, watched and undone."""
