"""A service that is killed repeatedly while it learns: no acknowledged lesson may be lost or counted twice.

python tests/service/kills.py --kills 1000                  services are forked from a process that has imported them
python tests/service/kills.py --kills 1000 --new-processes  each is a new process: about 1.5 CPU seconds more for each
"""

import argparse
import random
import shutil
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import httpx

import deciban
from service.forked import Forks
from service.running import Running


@dataclass
class Outcome:
    kills: int
    acknowledged: int
    unanswered: int
    learnt: int
    lost: int


def campaign(
    model: Path,
    kills: int,
    seconds: float,
    clients: int = 4,
    seed: int = 0,
    minutes: float = float("inf"),
    start=None,
) -> Outcome:
    """Teach from several clients, kill the process at random moments, start it again, and count at the end.

    Each service has acknowledged at least one lesson before it is killed, unless that takes more than 30 seconds.
    """
    rng = random.Random(seed)
    acknowledged: dict[str, int] = {}
    sent: list[str] = []
    refused = 0
    before = deciban.load(model).model_.weight
    counter = iter(range(10**9))
    snapshots = {model.stat().st_ino}  # model files that were seen after a kill
    end, done = time.monotonic() + 60 * minutes, 0
    for kill in range(kills):
        if time.monotonic() > end:
            break
        done += 1
        service = Running(model, "--save-every", "0.1", start=start)  # snapshots while lessons go on
        stop, known_before = threading.Event(), len(acknowledged)

        def teach(address=service.address, stop=stop):
            nonlocal refused
            with httpx.Client(base_url=address, timeout=5, trust_env=False) as client:
                while not stop.is_set():
                    n = next(counter)
                    key, bad = f"key-{n}", n % 10 == 9
                    sent.append(key)
                    body = {"text": f"lunch number{n}", "label": 17.5 if bad else "ham"}
                    try:
                        answer = client.post("/learn", json=body, headers={"Idempotency-Key": key})
                    except httpx.HTTPError:
                        return
                    if answer.status_code == 200:
                        assert key not in acknowledged
                        acknowledged[key] = answer.json()["id"]
                    else:
                        assert bad, answer.text
                        refused += 1

        threads = [threading.Thread(target=teach) for _ in range(clients)]
        for thread in threads:
            thread.start()
        until = time.monotonic() + 30
        while len(acknowledged) == known_before and time.monotonic() < until:  # a service that is taught
            time.sleep(0.01)
        time.sleep(rng.uniform(0.0, 1.0) * seconds)
        if kill % 5 == 4:  # an orderly end that is interrupted
            service.process.terminate()
            time.sleep(rng.uniform(0.0, 1.0) * seconds)
        service.kill()
        snapshots.add(model.stat().st_ino)
        stop.set()
        if done % 100 == 0:
            print(f"{done} kills, {len(acknowledged)} lessons acknowledged, {len(snapshots)} model files", flush=True)
        for thread in threads:
            thread.join()
    with Running(model) as service:
        rows = service.get("/model")["rows"] - before
        known = {}
        lessons, oldest = service.get("/history?most=200")["lessons"], None
        while lessons:
            for lesson in lessons:
                known[lesson["id"]] = lesson["rows"][0]
            oldest = lessons[-1]["id"]
            lessons = service.get(f"/history?most=200&before={oldest}")["lessons"] if oldest > 1 else []
    lost = sum(known.get(id) != f"lunch number{key.removeprefix('key-')}" for key, id in acknowledged.items())
    assert len(known) == len(set(known.values())) == rows, "a lesson counts twice"
    assert not any(int(text.removeprefix("lunch number")) % 10 == 9 for text in known.values()), "one was refused"
    unanswered = len(sent) - len(acknowledged) - refused
    assert len(acknowledged) <= rows <= len(acknowledged) + unanswered
    return Outcome(done, len(acknowledged), unanswered, int(rows), lost)


if __name__ == "__main__":
    from service.conftest import texts

    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=0, help="of the moments at which the service is killed")
    parser.add_argument("--new-processes", action="store_true", help="start each service as a new process")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    try:
        deciban.GenerativeClassifier(ledger=True).fit(*texts()).save(folder / "texts.deciban")
        begun = time.time()
        with Forks() as forks:
            start = None if given.new_processes else forks.start
            outcome = campaign(
                folder / "texts.deciban",
                given.kills,
                given.seconds,
                seed=given.seed,
                minutes=given.minutes,
                start=start,
            )
        print(outcome, f"{time.time() - begun:.0f} s")
    finally:
        shutil.rmtree(folder)
