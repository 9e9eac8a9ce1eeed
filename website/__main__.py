"""`python -m website`: builds the site of the documentation into build/site, and checks it."""

import sys
from pathlib import Path

from website.build import ROOT, BuildFailed, build


def main(below: Path) -> int:
    try:
        site, links = build(below)
    except BuildFailed as failed:
        print(failed, file=sys.stderr)
        return 1
    for problem in links.broken:
        print(f"broken link: {problem}", file=sys.stderr)
    for address in links.from_elsewhere:
        print(f"fetched from elsewhere: {address}", file=sys.stderr)
    print(f"{links.pages} pages in {site}. Links to other sites, not followed:")
    for address in links.external:
        print(f"  {address}")
    return 1 if links.broken or links.from_elsewhere else 0


if __name__ == "__main__":
    raise SystemExit(main(ROOT / "build"))
