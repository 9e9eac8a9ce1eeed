"""Why a guard cannot work."""

from kelpie.model.kelpie_error import KelpieError


class GuardFailed(KelpieError):
    """The guard cannot do what its options ask for. `status` is its exit code."""

    def __init__(self, message: str, status: int = 64) -> None:
        super().__init__(message)
        self.status = status
