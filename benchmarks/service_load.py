"""The service under load: answers and lessons per second, latencies, visibility of lessons, memory, unsure rows.

    python benchmarks/service_load.py                 about four minutes
    python benchmarks/service_load.py --hours 1       and an hour of mixed load
    python benchmarks/service_load.py --only pauses --lessons 300            lessons with pauses, about eight minutes
    python benchmarks/service_load.py --only mixed --hours 1 --rate 150      the hour alone, 150 requests a second

The client runs beside the server: `wrk` where it is installed, else asyncio. Loopback only. CPU time of the server per
request is printed too, because another process on the machine changes rates, but hardly that; and the rate of Starlette
that only echoes the same requests, in turns with the service, because the speed of a virtual machine changes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

import deciban

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from service.conftest import animals, texts
from service.running import Running

PREDICT = 'wrk.method = "POST"\nwrk.headers["Content-Type"] = "application/json"\nwrk.body = [[{body}]]\n'
LEARN = (
    'wrk.headers["Content-Type"] = "application/json"\nlocal n = 0\n'
    "request = function() n = n + 1\n"
    'return wrk.format("POST", "/learn", nil, \'{"text":"lunch at noon number\' .. n .. \'","label":"ham"}\') end\n'
)
PARTS = 12  # of the mixed load, after each of which memory is printed
ROW = {"weight": 3.5, "legs": 4, "coat": "grey"}


ROUNDS = 5  # of each job, in turns with the echo
ECHO = """
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

async def echo(request):
    return JSONResponse(await request.json())

app = Starlette(routes=[Route("/{path:path}", echo, methods=["POST"])])
"""


class Echo:
    """Starlette and uvicorn without deciban: they answer each request with its own content."""

    def __enter__(self) -> Echo:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.folder = tempfile.TemporaryDirectory()
        Path(self.folder.name, "echo.py").write_text(ECHO)
        options = ["--port", str(port), "--log-level", "warning", "--no-access-log"]
        self.process = subprocess.Popen([sys.executable, "-m", "uvicorn", "echo:app", *options], cwd=self.folder.name)
        self.address = f"http://127.0.0.1:{port}"
        for _ in range(200):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                return self
            time.sleep(0.05)
        raise RuntimeError("the echo does not start")

    def __exit__(self, *error: object) -> None:
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def running_seconds(pid: int) -> float:
    """CPU seconds of the threads that run now, to the microsecond."""
    return sum(int(task.read_text().split()[0]) for task in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def memory(pid: int) -> float:
    """MiB."""
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) / 1024


def wrk(service: Running | Echo, script: str, path: str, connections: int, seconds: int) -> dict[str, float]:
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(script)
        file.flush()
        before = cpu_seconds(service.process.pid)
        command = [
            "wrk",
            "-t1",
            f"-c{connections}",
            f"-d{seconds}",
            "--latency",
            "-s",
            file.name,
            service.address + path,
        ]
        out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        used = cpu_seconds(service.process.pid) - before
    n = int(re.search(r"(\d+) requests in", out)[1])
    scale = {"us": 1e-3, "ms": 1.0, "s": 1e3}
    late = re.search(r"99%\s+([\d.]+)(us|ms|s)", out)
    failed = re.search(r"Non-2xx or 3xx responses: (\d+)", out)
    return {
        "per second": float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1]),
        "p99 ms": float(late[1]) * scale[late[2]],
        "CPU µs": 1e6 * used / n,
        "refused": int(failed[1]) if failed else 0,
    }


async def post(reader, writer, path: str, body: dict) -> dict:
    """One request on an open connection."""
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    writer.write(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
    answer = await reader.readuntil(b"\r\n\r\n")
    size = int(re.search(rb"content-length: (\d+)", answer)[1])
    content = json.loads(await reader.readexactly(size))
    assert answer.startswith(b"HTTP/1.1 200"), content
    return content


async def mixed(service: Running, seconds: float, rate: float = 0.0, seed: int = 0) -> dict[str, float]:
    """Answers, lessons and undos together; at most `rate` requests a second, as many as possible if it is 0."""
    host, port = service.address.removeprefix("http://").split(":")
    connections, end, rng = 16, time.monotonic() + seconds, random.Random(seed)
    counts = {"answers": 0, "lessons": 0, "undone": 0}
    late: list[float] = []

    async def client(k: int) -> None:
        reader, writer = await asyncio.open_connection(host, int(port))
        pause = connections / rate if rate else 0.0
        due = time.monotonic() + rng.random() * pause
        while time.monotonic() < end:
            if pause:
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                due = max(due + pause, time.monotonic() - pause)
            begun = time.monotonic()
            kind = rng.random()
            if kind < 0.8:
                await post(reader, writer, "/predict", {"text": f"free lunch at noon {rng.randrange(1000)}"})
                counts["answers"] += 1
                late.append(time.monotonic() - begun)
            else:
                text = f"lunch with client{rng.randrange(50)} free"
                lesson = await post(reader, writer, "/learn", {"text": text, "label": rng.choice(["ham", "spam"])})
                counts["lessons"] += 1
                if kind > 0.9:
                    await post(reader, writer, "/undo", {"id": lesson["id"]})
                    counts["undone"] += 1
        writer.close()

    await asyncio.gather(*(client(k) for k in range(connections)))
    return {**counts, "p99 ms": 1e3 * float(np.quantile(late, 0.99))}


def rates(folder: Path, seconds: int) -> None:
    if shutil.which("wrk") is None:
        print("wrk is not installed: rates are not measured")
        return
    text = PREDICT.format(body='{"text":"win a free prize now, call me at noon"}')
    row = PREDICT.format(body=json.dumps({"row": ROW}))
    for name, script, path, model in (
        ("answers, text", text, "/predict", "texts"),
        ("answers, table", row, "/predict", "animals"),
        ("lessons, text", LEARN, "/learn", "texts"),
    ):
        connections = 128 if path == "/learn" else 64
        with Echo() as echo, Running(folder / f"{model}.deciban") as service:
            for each in (echo, service):
                wrk(each, script, path, 32, 1)
            both = (echo, service)
            rounds = [[wrk(each, script, path, connections, seconds) for each in both] for _ in range(ROUNDS)]
        found = {what: float(np.median([one[1][what] for one in rounds])) for what in rounds[0][1]}
        bare = [one[0]["per second"] for one in rounds]
        used = np.median([one[0]["CPU µs"] for one in rounds])
        share = np.median([one[1]["per second"] / one[0]["per second"] for one in rounds])
        print(
            f"{name:<16}",
            ", ".join(f"{what} {value:,.0f}" for what, value in found.items()),
            f"(largest {max(one[1]['per second'] for one in rounds):,.0f}); Starlette echoing the same requests: "
            f"{np.median(bare):,.0f} per second (largest {max(bare):,.0f}), CPU µs {used:.0f}, ratio {share:.2f}",
            flush=True,
        )


V, K, DOCUMENTS = 200_000, 20, 20_000  # of the large model


def large_model(folder: Path) -> tuple[list[str], np.ndarray]:
    """Make the large model, and return its documents and their labels."""
    rng = np.random.default_rng(0)
    words = np.array([f"w{i}" for i in range(V)])
    documents = [" ".join(words[rng.integers(0, V, 60)]) for _ in range(DOCUMENTS)]
    labels = rng.integers(0, K, DOCUMENTS)
    deciban.GenerativeClassifier(deciban.Text(), ledger=True, calibrate=None).fit(documents, labels).save(
        folder / "large.deciban"
    )
    return documents, labels


def pauses(folder: Path, lessons: int, most: float, save_every: float) -> None:
    """Visibility of lessons with pauses of 0 to `most` seconds between them, while snapshots are written, too."""
    documents, labels = large_model(folder)
    rng, seen = np.random.default_rng(1), []
    with Running(folder / "large.deciban", "--save-every", str(save_every)) as service:
        begun_at, used = time.monotonic(), cpu_seconds(service.process.pid)
        for k in range(lessons):
            time.sleep(rng.uniform(0, most))
            text = f"{documents[k]} new{k} unseen{k}" if k % 2 else documents[k]
            writing = service.model.with_name(f"{service.model.name}.snapshot").exists() or any(
                folder.glob(".large*tmp")
            )
            begun, before = time.perf_counter(), running_seconds(service.process.pid)
            lesson = service.post("/learn", {"text": text, "label": int(labels[k])})
            service.post("/predict", {"text": text, "after": lesson["id"]})
            spent = max(0.0, running_seconds(service.process.pid) - before)
            seen.append((1e3 * (time.perf_counter() - begun), 1e3 * spent, writing))
        busy = (cpu_seconds(service.process.pid) - used) / (time.monotonic() - begun_at)
    every, spent, writing = (np.array(each) for each in zip(*seen))
    written = every[writing]
    print(
        f"{lessons} lessons visible, pauses 0 to {most:g} s (V = {V:,}, K = {K}; every second one with two new words; "
        f"a snapshot every {save_every:g} s): median {np.median(every):.0f} ms, p99 {np.quantile(every, 0.99):.0f} ms, "
        f"largest {every.max():.0f} ms; {(every > 100).sum()} above 100 ms; first {every[0]:.0f} ms; "
        f"server {100 * busy:.0f} % of a core; CPU of the server from the request until the lesson is visible, other "
        f"work included: median {np.median(spent):.0f} ms, p99 {np.quantile(spent, 0.99):.0f} ms, largest "
        f"{spent.max():.0f} ms"
    )
    if len(written):
        print(
            f"{len(written)} of them came while a snapshot was written: largest {written.max():.0f} ms, "
            f"CPU {spent[writing].max():.0f} ms",
            flush=True,
        )


def large(folder: Path) -> None:
    """Visibility of a lesson, and unsure rows, at 200,000 words and 20 classes."""
    documents, labels = large_model(folder)
    with Running(folder / "large.deciban", "--most-mb", "64") as service:
        taught = []
        for kind in ("known words", "two new words", "undo of an older lesson"):
            visible, answered, used = [], [], []
            for k in range(30):
                text = documents[k] if kind == "known words" else f"{documents[k]} new{k} unseen{k}"
                if kind.startswith("undo"):
                    time.sleep(0.5)
                begun, before = time.perf_counter(), cpu_seconds(service.process.pid)
                if kind.startswith("undo"):
                    lesson = service.post("/undo", {"id": taught[k]})
                else:
                    lesson = service.post("/learn", {"text": text, "label": int(labels[k])})
                    taught.append(lesson["id"])
                service.post("/predict", {"text": text, "after": lesson["id"]})
                visible.append(time.perf_counter() - begun)
                used.append(cpu_seconds(service.process.pid) - before)
                begun = time.perf_counter()
                service.post("/predict", {"text": text})
                answered.append(time.perf_counter() - begun)
            print(
                f"lesson visible, {kind}: median {1e3 * np.median(visible):.0f} ms, largest {1e3 * max(visible):.0f} "
                f"ms, CPU {1e3 * np.mean(used):.0f} ms (V = {V:,}, K = {K}); "
                f"an answer {1e3 * np.median(answered):.1f} ms"
            )
    from deciban.service.answers import UnsureRows
    from deciban.service.teacher import Teacher

    teacher = Teacher(folder / "large.deciban")
    pile = UnsureRows()
    pile.add(documents[:10_000], teacher.published)
    pile.next(teacher.published)
    scored, used = [], []
    for _ in range(5):
        pile._pile = type(pile._pile)(pile._pile.rows, pile._pile.keys)
        begun, before = time.perf_counter(), time.process_time()
        pile.next(teacher.published)
        scored.append(time.perf_counter() - begun)
        used.append(time.process_time() - before)
    print(f"10,000 unsure rows median {1e3 * np.median(scored):.0f} ms, CPU {1e3 * np.median(used):.0f} ms", flush=True)
    teacher.close()


def learnt_rows(service: Running) -> float:
    """Rows of a model that contains every lesson that was acknowledged."""
    latest = service.get("/history?most=1")["lessons"]
    return service.get(f"/model?after={latest[0]['id'] if latest else 0}")["rows"]


def endurance(folder: Path, seconds: float, rate: float) -> None:
    """Mixed load: memory must not grow without bound, and no lesson may be lost."""
    shutil.copy(folder / "texts.deciban", folder / "long.deciban")
    before = deciban.load(folder / "long.deciban").model_.weight
    with Running(folder / "long.deciban") as service:
        asyncio.run(mixed(service, min(20, seconds / 4), rate))
        start, rows = memory(service.process.pid), learnt_rows(service)
        used, parts, found = cpu_seconds(service.process.pid), [], {}
        for part in range(PARTS):
            parts.append(asyncio.run(mixed(service, seconds / PARTS, rate, seed=part)))
            print(f"{(part + 1) / PARTS:4.0%} of the time: memory {memory(service.process.pid):.0f} MiB", flush=True)
        for what in parts[0]:
            found[what] = max(one[what] for one in parts) if what == "p99 ms" else sum(one[what] for one in parts)
        end, used = memory(service.process.pid), cpu_seconds(service.process.pid) - used
        learnt = learnt_rows(service) - rows
        print(
            f"{seconds / 60:.0f} minutes mixed: {found['answers']:,} answers, {found['lessons']:,} lessons, "
            f"{found['undone']:,} undone, p99 of answers {found['p99 ms']:.0f} ms, "
            f"{100 * used / seconds:.0f} % of a core; "
            f"memory {start:.0f} → {end:.0f} MiB; lessons lost {found['lessons'] - found['undone'] - learnt:.0f}"
        )
        total = learnt_rows(service)
    assert deciban.load(folder / "long.deciban").model_.weight == total > before


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=4, help="of each round")
    parser.add_argument("--hours", type=float, default=0.0)
    parser.add_argument("--rate", type=float, default=0.0, help="requests a second of the mixed load; 0: no limit")
    parser.add_argument("--only", choices=("rates", "large", "pauses", "mixed"))
    parser.add_argument("--lessons", type=int, default=100, help="with pauses")
    parser.add_argument("--pause", type=float, default=3.0, help="the longest between two lessons, in seconds")
    parser.add_argument("--save-every", type=float, default=5.0, help="seconds between snapshots, with pauses")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    try:
        animals().write_csv(folder / "animals.csv")
        deciban.GenerativeClassifier(ledger=True).fit(*texts()).save(folder / "texts.deciban")
        table = deciban.GenerativeClassifier(ledger=True).fit(folder / "animals.csv", "kind")
        table.save(folder / "animals.deciban")
        if given.only in (None, "rates"):
            rates(folder, given.seconds)
        if given.only in (None, "large"):
            large(folder)
        if given.only in (None, "pauses"):
            pauses(folder, given.lessons, given.pause, given.save_every)
        if given.hours and given.only in (None, "mixed"):
            endurance(folder, 3600 * given.hours, given.rate)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
