"""Settings of S3: from the environment (AWS_*), from Spark's settings and from Hadoop's configuration.

Whatever they come from, this process keeps them in its environment, and nowhere else: deltalake, the client
of `objects`, Java and Python's workers all read them there, so no command line, log, plan or table has them.
What the environment has, wins; then Spark's settings; then core-site.xml of HADOOP_CONF_DIR.
"""

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path

OF_HADOOP = {
    "fs.s3a.endpoint": "AWS_ENDPOINT_URL",
    "fs.s3a.endpoint.region": "AWS_REGION",
    "fs.s3a.access.key": "AWS_ACCESS_KEY_ID",
    "fs.s3a.secret.key": "AWS_SECRET_ACCESS_KEY",
    "fs.s3a.session.token": "AWS_SESSION_TOKEN",
}
_IN_SPARK = "spark.hadoop."
_LARGEST_FILE = 4 << 20
_PLAIN_HTTP = "AWS_ALLOW_HTTP"
_VARIABLES = (*OF_HADOOP.values(), "AWS_DEFAULT_REGION", _PLAIN_HTTP)


def adopt(spark_settings: Mapping[str, str]) -> None:
    """Puts what Spark or Hadoop were told about S3 into the environment, unless it has it."""
    told_spark = {name.removeprefix(_IN_SPARK): value for name, value in spark_settings.items()}
    known = {**_core_site(os.environ.get("HADOOP_CONF_DIR")), **told_spark}
    for name, variable in OF_HADOOP.items():
        value = known.get(name, "")
        if value and not os.environ.get(variable):
            has_scheme = variable != "AWS_ENDPOINT_URL" or "://" in value
            os.environ[variable] = value if has_scheme else f"https://{value}"
    if os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://"):
        os.environ.setdefault(_PLAIN_HTTP, "true")


def s3_settings() -> dict[str, str]:
    """What is known of the settings that deltalake, and tasks on other machines, need."""
    adopt({})
    return {name: value for name in _VARIABLES if (value := os.environ.get(name))}


def for_java() -> dict[str, str]:
    """Spark's settings that Java does not take from the environment by itself; no secret is among them."""
    settings = {}
    if endpoint := os.environ.get("AWS_ENDPOINT_URL"):
        settings["spark.hadoop.fs.s3a.endpoint"] = endpoint
        # Servers other than Amazon's seldom have a host name for each bucket.
        settings["spark.hadoop.fs.s3a.path.style.access"] = "true"
    if region := os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"):
        settings["spark.hadoop.fs.s3a.endpoint.region"] = region
    return settings


@cache
def _core_site(folder: str | None) -> dict[str, str]:
    from xml.etree import ElementTree  # noqa: PLC0415 - commands start without it.

    file = Path(folder) / "core-site.xml" if folder else None
    try:
        if file is None or file.stat().st_size > _LARGEST_FILE:
            return {}
        root = ElementTree.fromstring(file.read_bytes())  # noqa: S314 - the user's own configuration.
    except (OSError, ElementTree.ParseError):
        return {}
    pairs = ((each.findtext("name") or "", each.findtext("value") or "") for each in root.iter("property"))
    return {name.strip(): value.strip() for name, value in pairs}
