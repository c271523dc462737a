"""What the folder of a demo holds: a configuration, a suite of 30 cases, and a package that does not exist.

The package is installed as any other is, by its metadata, in the folder itself: what is found beside a
configuration can be imported, and so it counts as a part of the environment that runs keep.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from collectors.suite import SHIPPED_DIR
from store.settings import CONFIG_VARIABLE

SUITE, ASSISTANT, STEADY = "support", "assistant", "steady"
PACKAGE, GOOD, BAD, MENDED = "recall-sdk", "1.4.2", "1.5.0", "1.5.1"
CONFIG, STORY, CHANNEL_URL, MESSAGES = "memtrend.toml", "story.json", "slack-url", "slack.jsonl"
RECORD, COMPARED, REPORTED = "memtrend.db", "compare.html", "report.html"
OWN_CASES = Path(__file__).parent / "cases.jsonl"

SETTINGS = """\
# A month of a support desk whose assistant has a memory: all of it is made up.
[database]
url = "sqlite:///{record}"

[suites.{suite}]                  # `smoke`, and ten cases more
path = "{suite}.jsonl"
owner = "support-desk"

[backends.{assistant}]            # a few questions are unsure, each night anew
type = "faulty"
directory = "stores/{assistant}"
fault = "flaky"
share = 0.15
flip = 0.2
seed = 4262
since = "{since:%Y-%m-%d}"

[backends.{assistant}.of]         # and in one release of its package what was amended stays, too
type = "faulty"
fault = "superseded-beside"
requires = "{package}"
releases = ["{bad}"]
of = {{ type = "hybrid" }}

[backends.{steady}]
type = "hybrid"
directory = "stores/{steady}"

[backends.dense]                  # what every real system should beat
type = "dense"
directory = "stores/dense"

[backends.nothing]                # the two floors: nobody should be proud to beat them
type = "nothing"

[backends.everything]
type = "everything"

[schedules.nightly]
cron = "0 3 * * *"
suites = ["{suite}"]
backends = ["{assistant}", "{steady}", "dense"]

[schedules.floors]                # they never change: some nights will do
cron = "0 3 {floors} * *"
suites = ["{suite}"]
backends = ["nothing", "everything"]

[channels.team]                   # a stand-in for Slack, which is there while the demo runs
type = "slack"
url_file = "{url}"
drills = true

[alerts]
base_url = "{dashboard}"
"""


def furnish(folder: Path, first: datetime, dashboard: str) -> None:
    """Write all but the record into a folder that is there. `first`: its first night; `dashboard`: where it
    will answer."""
    some = ",".join(str((first + timedelta(days=4 * n)).day) for n in range(8))
    names = {"suite": SUITE, "assistant": ASSISTANT, "steady": STEADY, "package": PACKAGE, "bad": BAD}
    places = {"record": RECORD, "url": CHANNEL_URL, "dashboard": dashboard}
    told = SETTINGS.format(**names, **places, since=first, floors=some)
    (folder / CONFIG).write_text(told, encoding="utf-8")
    lines = [*_smoke(), *OWN_CASES.read_text(encoding="utf-8").splitlines()]
    (folder / f"{SUITE}.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    install(folder, GOOD)


def _smoke() -> Iterator[str]:
    for file in sorted((SHIPPED_DIR / "golden").glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            if "smoke" in json.loads(line)["tags"]:
                yield line


def install(folder: Path, release: str) -> None:
    """Put this release of the package in the place of the one that is there. Who runs already goes on with
    that."""
    name = PACKAGE.replace("-", "_")
    for former in folder.glob(f"{name}-*.dist-info"):
        shutil.rmtree(former)
    metadata = folder / f"{name}-{release}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: {release}\n")


def enter(folder: Path) -> None:
    """Have this process, and those that it starts, go by the demo's configuration and by nothing else that
    is set: least of all by the address of another record."""
    for name in [name for name in os.environ if name.startswith("MEMTREND_")]:
        del os.environ[name]
    os.environ[CONFIG_VARIABLE] = str(folder / CONFIG)


def is_demo(folder: Path) -> bool:
    """Whether a demo was built there, to the end."""
    return (folder / STORY).is_file()


def read_story(folder: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((folder / STORY).read_text(encoding="utf-8"))
    return told


def write_story(folder: Path, told: dict[str, Any]) -> None:
    text = json.dumps(told, ensure_ascii=False, indent=2)
    (folder / STORY).write_text(f"{text}\n", encoding="utf-8")
