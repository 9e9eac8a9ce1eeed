class CommandError(Exception):
    """Something a user can mend. Its text says what happened, where, and what to do next."""

    def __init__(self, message: str, status: int = 2) -> None:
        super().__init__(message)
        self.status = status
