from kelpie.model.kelpie_error import KelpieError


class LabError(KelpieError):
    """Something the user of a lab can mend. Its text says what happened, and what to do next."""


class LabDefect(RuntimeError):
    """The lab itself went wrong while it ran; the cause is chained to it."""
