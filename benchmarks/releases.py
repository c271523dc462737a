"""What an environment of its own costs: making it, asking through its pipe, and whole suites on real systems.

Beside each figure stands what one would use instead: pip for the environment, a small HTTP server around the
backend for the pipe, the same backend in process for a suite.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # not this folder, whose statistics.py would hide Python's

import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.measure import Bar, fresh, parser, tell

RELEASE = "mem0ai==2.2.1"
SYSTEM = "/usr/bin/python3"
TEN: Mapping[str, Mapping[str, Any]] = {
    "mem0-0.1.118": {"type": "mem0", "package": "mem0ai==0.1.118"},
    "mem0-1.0.3": {"type": "mem0", "package": "mem0ai==1.0.3"},
    "mem0-1.0.11": {"type": "mem0", "package": "mem0ai==1.0.11"},
    "mem0-2.0.0": {"type": "mem0", "package": "mem0ai==2.0.0"},
    "mem0-2.2.1": {"type": "mem0", "package": RELEASE},
    "langgraph-memory": {"type": "langgraph", "package": "langgraph==1.2.24"},
    "langgraph-sqlite": {
        "type": "langgraph",
        "store": "sqlite",
        "package": "langgraph==1.2.24",
        "with": ["langgraph-checkpoint-sqlite==3.1.2"],
        "python": SYSTEM,
    },
    "chroma": {"type": "chroma", "package": "chromadb==1.5.9"},
    "qdrant": {"type": "qdrant", "package": "qdrant-client==1.20.0"},
    "lancedb": {"type": "lancedb", "package": "lancedb==0.40.0"},
}
MAKING_S, OVERHEAD_MS, SMOKE_S, GOLDEN_S, COLLECTOR_MB = 30, 1.0, 1800, 300, 300


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--quick", action="store_true", help="the environment and the pipe alone")
    options.add_argument("--calls", type=int, default=2000, help="questions asked through the pipe")
    options.add_argument("--part", choices=sorted(PARTS), help="one measurement, in a process of its own")
    arguments = options.parse_args()
    if arguments.part:
        print(json.dumps(PARTS[arguments.part](arguments.calls)))
        return 0
    making, pipe = fresh(__file__, "--part", "making"), _pipe(arguments.calls)
    bars = [
        Bar("environment_seconds", round(making["uv_s"], 1), MAKING_S),
        Bar("call_overhead_ms", round(pipe["isolated_ms"], 3), OVERHEAD_MS),
    ]
    lines = [*_told(making, pipe)]
    if not arguments.quick:
        ten, golden = _suites(TEN, "smoke"), _suites({"mem0-2.2.1": TEN["mem0-2.2.1"]}, "golden")
        lines += [*_told_of_suites("smoke", ten), *_told_of_suites("golden", golden)]
        runs = (*ten.values(), *golden.values())
        bars += [
            Bar("smoke_on_ten_seconds", round(sum(run["seconds"] for run in ten.values())), SMOKE_S),
            Bar("golden_on_mem0_seconds", round(golden["mem0-2.2.1"]["seconds"]), GOLDEN_S),
            Bar("collector_mb", round(max(run["peak_mb"] for run in runs)), COLLECTOR_MB),
            Bar("runs_not_whole", sum(run["status"] != "whole" for run in runs), 0),
        ]
    return tell(arguments.json, lines, bars)


def _told(making: Mapping[str, float], pipe: Mapping[str, float]) -> Iterator[str]:
    yield f"environment of {RELEASE}, warm cache: {making['uv_s']:.1f} s"
    yield f"  venv and pip: {making['pip_s']:.1f} s, {making['pip_s'] / making['uv_s']:.0f} times as long"
    yield f"a question through the pipe: {pipe['isolated_ms']:.3f} ms over the backend's own time"
    http = pipe["http_ms"]
    yield f"  to an HTTP server around it: {http:.3f} ms, {http / pipe['isolated_ms']:.0f} times as long"


def _told_of_suites(suite: str, runs: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for name, run in runs.items():
        yield f"{suite} on {name}: {run['seconds']:.1f} s, {run['status']}, collector {run['peak_mb']:.0f} MB"


# The pipe


def _pipe(calls: int) -> dict[str, float]:
    return {**fresh(__file__, "--part", "isolated", "--calls", str(calls)),
            **fresh(__file__, "--part", "http", "--calls", str(calls))}  # fmt: skip


def _isolated(calls: int) -> dict[str, float]:
    """Median ms of a round trip beyond the time that the worker took itself."""
    from collectors.backend import BackendConfig, Isolation, open_backend
    from collectors.timing import timed

    backend = open_backend(BackendConfig("b", "keyword", isolation=Isolation("six==1.17.0")))
    scope, query = _filled(backend)
    over = []
    for _ in range(calls):
        started = time.perf_counter()
        own = timed(lambda: backend.recall(scope, query, 5)).ms
        over.append((time.perf_counter() - started) * 1000 - own)
    backend.close()
    return {"isolated_ms": statistics.median(over)}


def _http(calls: int) -> dict[str, float]:
    """The same backend behind the standard library's HTTP server, in a process of its own."""
    import httpx

    with subprocess.Popen(
        [sys.executable, __file__, "--part", "server"], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}"
        over = []
        with httpx.Client() as client:
            for _ in range(calls):
                started = time.perf_counter()
                own = client.post(url, json={"query": "ferry", "k": 5}).json()["ms"]
                over.append((time.perf_counter() - started) * 1000 - own)
        server.kill()
    return {"http_ms": statistics.median(over)}


def _serve(_: int) -> None:
    from dataclasses import asdict
    from http.server import BaseHTTPRequestHandler, HTTPServer

    from collectors.backend import BackendConfig, open_backend
    from collectors.timing import timed

    backend = open_backend(BackendConfig("b", "keyword"))
    scope, query = _filled(backend)

    class Answer(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            made = timed(lambda: backend.recall(scope, query, 5))
            said = json.dumps({"hits": [asdict(hit) for hit in made.value.hits], "ms": made.ms}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *told: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Answer)
    print(server.server_port, flush=True)
    server.serve_forever()


def _filled(backend: Any) -> tuple[Any, str]:
    from collectors.suite import Memory, Scope

    scope = Scope("memtrend-benchmark")
    backend.reset(scope)
    backend.remember(scope, [Memory(f"m-{n}", f"The ferry number {n} leaves at {n}.") for n in range(20)])
    return scope, "ferry"


# The environment


def _making(_: int) -> dict[str, float]:
    from collectors import envs
    from collectors.backend import Isolation

    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "envs"
        with envs.using(Isolation(RELEASE, home=home)) as (env, _lock):  # fills the caches
            lock = env.path / "lock.txt"
            kept = lock.read_text(encoding="utf-8")
        started = time.perf_counter()
        with envs.using(Isolation(RELEASE, home=Path(folder) / "again")):
            uv_s = time.perf_counter() - started
        return {"uv_s": uv_s, "pip_s": _pip(Path(folder), kept)}


def _pip(folder: Path, lock: str) -> float:
    """What `python -m venv` and `pip install` take for the very same packages, its cache warm too."""
    wanted = folder / "lock.txt"
    wanted.write_text(lock, encoding="utf-8")
    seconds = 0.0
    for turn in ("first", "second"):
        started = time.perf_counter()
        _run([getattr(sys, "_base_executable", sys.executable), "-m", "venv", str(folder / turn)])
        pip = [str(folder / turn / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        _run([*pip, "--disable-pip-version-check", "-r", str(wanted)])
        seconds = time.perf_counter() - started
    return seconds


def _run(command: Sequence[str]) -> None:
    subprocess.run(command, check=True, stdout=sys.stderr)


# Suites, by the command line


def _suites(backends: Mapping[str, Mapping[str, Any]], suite: str) -> dict[str, dict[str, Any]]:
    """Each by itself, its environment made before the clock starts."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "memtrend.toml").write_text(_toml(backends), encoding="utf-8")
        memtrend = str(Path(sys.executable).parent / "memtrend")
        subprocess.run([memtrend, "backend", "envs", "--make"], cwd=folder, check=True, stdout=sys.stderr)
        return {name: _timed_run(folder, name, suite) for name in backends}


def _timed_run(folder: str, backend: str, suite: str) -> dict[str, Any]:
    command = [str(Path(sys.executable).parent / "memtrend"), "run", "--json", "-s", suite, "-b", backend]
    started = time.perf_counter()
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(command, cwd=folder, stdout=out)
        _, _, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        out.seek(0)
        [run] = json.load(out)["runs"]
    return {"seconds": seconds, "status": run["status"], "peak_mb": used.ru_maxrss / 1024}


def _toml(backends: Mapping[str, Mapping[str, Any]]) -> str:
    sections = (
        "\n".join(
            [f"[backends.{json.dumps(name)}]", *(f"{key} = {json.dumps(value)}" for key, value in of.items())]
        )
        for name, of in backends.items()
    )
    return "\n\n".join(sections)


PARTS = {"making": _making, "isolated": _isolated, "http": _http, "server": _serve}

if __name__ == "__main__":
    sys.exit(main())
