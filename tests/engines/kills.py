"""Workers of a Dask cluster are killed at random moments of a fit; every model must be that of one machine, to the bit.

    python tests/engines/kills.py --kills 10

Run by `make test-dask`. Each round fits the same files by two workers; one of them is killed after a random part of the
time that a round took so far. Dask starts another worker, and runs the lost tasks again.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

from distributed import Client, LocalCluster

from deciban import GenerativeClassifier
from deciban.engines.dask import DaskEngine
from engine_rows import columns, planned, write

FAMILIES = {"size": "gaussian", "colour": "categorical", "calls": "poisson"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    draw = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        pattern = write(Path(folder), columns(400_000), 8, 2_000)
        clf = GenerativeClassifier(FAMILIES, calibrate="offsets")
        alone = planned(clf, pattern)
        start = time.monotonic()
        check(alone, fitted(clf, pattern))
        seconds, during = time.monotonic() - start, 0
        while during < options.kills:
            wait, start = draw.uniform(0, seconds), time.monotonic()
            in_time = killed(clf, pattern, alone, draw, wait)
            seconds = min(seconds, time.monotonic() - start)  # of a fit, which a busy machine makes longer
            during += in_time
            print(f"killed after {wait:.2f} s, {'during' if in_time else 'after'} the fit: the same model", flush=True)
        print(f"{during} kills during a fit; every model equal to the bit")


@contextmanager
def cluster():
    """Two workers; a cluster for each round, because Dask does not always replace a worker that was killed."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as workers,
        Client(workers, set_as_default=False) as client,
    ):
        yield client


def fitted(clf, pattern):
    with cluster() as client:
        return planned(clf, pattern, DaskEngine(client, quiet=True))


def killed(clf, pattern, alone, draw, wait) -> bool:
    """Fit while one worker is killed after so many seconds; return whether that was before the end."""
    with cluster() as client:
        victim, done = draw.choice(list(client.run(os.getpid).values())), threading.Event()

        def kill():
            time.sleep(wait)
            with suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
                done.set()

        thread = threading.Thread(target=kill)
        thread.start()
        found = planned(clf, pattern, DaskEngine(client, quiet=True))
        in_time = done.is_set()
        thread.join()
    check(alone, found)
    return in_time


def check(one, two) -> None:
    if not one.model.stats.same(two.model.stats) or not one.model.calibration.agrees(two.model.calibration):
        raise SystemExit("the model is another one")


if __name__ == "__main__":
    main()
