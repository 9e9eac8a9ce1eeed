"""An S3 server on loopback: S3Proxy 4.1.0, which keeps objects as files.

Of the small servers for tests that were tried (S3Proxy, moto, Adobe's S3Mock, rclone), this one alone gives
one winner when several clients write the same key with `If-None-Match: *` at once, as Amazon's S3 does.
"""

import secrets
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path

from kelpie.real import fetch, java, ports, properties, releases
from kelpie.real.fleet import Fleet, FleetNode

JARS = "s3proxy-4.1.0"
BUCKET = "kelpie"
_HEAP_MB = 256
_ANSWER_S = 5.0
_REFUSED = 403


class RealS3(Fleet):
    """One server on a free port of loopback, with one bucket, and a key and a secret of its own."""

    def __init__(self, *, announce: Callable[[str], None] | None = None) -> None:
        super().__init__()
        self._announce = announce
        self._jar = Path()
        self._key, self._secret = f"kelpie{secrets.token_hex(4)}", secrets.token_hex(16)

    @property
    def title(self) -> str:
        return "S3Proxy 4.1.0"

    @property
    def ports_chosen(self) -> bool:
        return False

    @property
    def endpoint(self) -> str:
        return f"http://{ports.HOST}:{self.find('s3').port}"

    @property
    def url(self) -> str:
        """The bucket."""
        return f"s3a://{BUCKET}"

    @property
    def environment(self) -> dict[str, str]:
        """What clients of S3 read from their environment."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": self._key,
            "AWS_SECRET_ACCESS_KEY": self._secret,
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
        }

    def _plan(self) -> None:
        jars = releases.pinned(JARS)
        folder = fetch.libraries(JARS, jars, title="S3Proxy 4.1.0", announce=self._announce)
        self._jar = folder / jars[0].file_name
        node = FleetNode("s3", "s3", ports.free(1)[0], self.root / "s3")
        (node.data / BUCKET).mkdir(parents=True)
        node.config.touch(mode=0o600)
        node.config.write_text(
            properties.text(
                {
                    "s3proxy.endpoint": f"http://{ports.HOST}:{node.port}",
                    "s3proxy.authorization": "aws-v2-or-v4",
                    "s3proxy.identity": self._key,
                    "s3proxy.credential": self._secret,
                    "jclouds.provider": "filesystem-nio2",
                    "jclouds.filesystem.basedir": str(node.data),
                    "jclouds.identity": "unused",
                    "jclouds.credential": "unused",
                }
            )
        )
        self.nodes = {node.name: node}

    def _launch(self) -> None:
        node = self.nodes["s3"]
        self._spawn(node)
        self._wait_ready([node])

    def _command(self, node: FleetNode) -> Sequence[str]:
        options = (f"-Djava.io.tmpdir={node.folder}", "-DLOG_LEVEL=warn")
        main = "org.gaul.s3proxy.Main"
        command = java.command(str(self._jar), main, heap_mb=_HEAP_MB, options=options)
        return [*command, "--properties", str(node.config)]

    def _before_start(self, node: FleetNode) -> None:
        """The server starts at once."""

    def _complaint(self, node: FleetNode) -> str | None:
        try:
            urllib.request.urlopen(f"http://{ports.HOST}:{node.port}/", timeout=_ANSWER_S).close()
        except urllib.error.HTTPError as error:
            # A request without a signature is refused, by a server that works.
            return None if error.code == _REFUSED else f"it answers {error.code}"
        except OSError as error:
            return f"port {node.port} does not answer ({error})"
        return "it lets everybody in"
