"""A request that the controller does not grant."""

from kelpie.errors import ErrorCode


class Declined(Exception):
    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
