"""What Kubernetes is asked for by `kelpie pipeline submit`, with Spark's own client.

There is no cluster: a server on this machine answers as an API server does, says that it has made what it was
told to make, and keeps it. Whether pods then run cannot be seen here.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.long, pytest.mark.real]

LIMIT_S = 600
SECRET = "a-very-secret-key"


@contextmanager
def api_server() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Its address, and all that it was told to make."""
    made: list[dict[str, Any]] = []

    class Answers(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self, document: dict[str, Any], status: int = 200) -> None:
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            self._answer({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404}, 404)

        def _make(self) -> None:
            told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            metadata = told.setdefault("metadata", {})
            metadata |= {"uid": f"uid-{len(made)}", "namespace": "default", "resourceVersion": "1"}
            made.append(told)
            self._answer(told, 201)

        def do_POST(self) -> None:
            self._make()

        def do_PUT(self) -> None:
            self._make()

        def do_PATCH(self) -> None:
            self._make()

        def log_message(self, *_: object) -> None:
            """Tests are quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", made
        finally:
            server.shutdown()
            thread.join()


def test_the_driver_gets_kelpie_its_options_and_no_secret(tmp_path: Path) -> None:
    """Keys of S3 come from a secret of the cluster's, and what this machine knows of them stays here."""
    upload = tmp_path / "upload"
    upload.mkdir()
    settings = {
        "spark.kubernetes.container.image": "kelpie-spark:4.2",
        "spark.kubernetes.file.upload.path": f"file://{upload}",
        "spark.kubernetes.submission.waitAppCompletion": "false",
        "spark.kubernetes.driver.secretKeyRef.AWS_SECRET_ACCESS_KEY": "store:secret",
    }
    options = ["--from", "s3://observability/landing", "--into", "s3://observability/kelpie", "-q"]
    with api_server() as (address, made):
        done = subprocess.run(
            [
                *(sys.executable, "-m", "kelpie", "pipeline", "submit", "--master", f"k8s://{address}"),
                *("--deploy-mode", "cluster"),
                *(word for pair in settings.items() for word in ("--conf", "=".join(pair))),
                *("--", *options),
            ],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
            env={**os.environ, "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": SECRET},
        )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    (pod,) = [each for each in made if each["kind"] == "Pod"]
    (container,) = pod["spec"]["containers"]
    assert container["image"] == "kelpie-spark:4.2"
    words = container["args"]
    script = next(number for number, word in enumerate(words) if word.endswith("kelpie_pipeline.py"))
    assert words[script + 1 :] == ["run", *options]
    (key,) = [each for each in container["env"] if each["name"] == "AWS_SECRET_ACCESS_KEY"]
    assert key["valueFrom"]["secretKeyRef"] == {"name": "store", "key": "secret"}
    maps = [each for each in made if each["kind"] == "ConfigMap" and "spark.properties" in each["data"]]
    (properties,) = {each["data"]["spark.properties"] for each in maps}
    (package,) = upload.rglob("kelpie.zip")
    (files,) = [line for line in properties.splitlines() if line.startswith("spark.submit.pyFiles=")]
    assert files.endswith(f"/{package.parent.name}/kelpie.zip")
    assert list(upload.rglob("kelpie_pipeline.py"))
    assert sys.executable not in properties
    assert SECRET not in json.dumps(made) + done.stdout + done.stderr
