"""What programs that use Kelpie catch."""


class KelpieError(Exception):
    """Something that the caller can mend, or that a cluster, a file or a table does not give.

    The text says what happened, and what to do about it.
    """
