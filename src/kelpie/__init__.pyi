from kelpie.api import *  # noqa: F403
from kelpie.api import aio as aio

__version__: str
