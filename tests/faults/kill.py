"""Kills the program at random moments, and checks that no learnt row was lost: `python tests/faults/kill.py 1000`.

Each lane has a folder with a model. Commands learn batches, unlearn them, fit and merge; each is killed (SIGKILL) at a
random moment of its life, or a few milliseconds after its temporary file appeared. After each kill the model must load
with all its digests, hold the rows from before the command or those from after it, and the next command must remove
the temporary file. At the end the sums must equal those of a model that learnt the same batches undisturbed.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

from deciban import GenerativeClassifier, load
from deciban.store.files import leftovers
from program import PROGRAM, environment, import_program, run_as_program

MODEL = "model.deciban"
BATCHES, ROWS, FIRST = 40, 25, 400
CLASSES = np.array(["a", "b", "c"])


class Lane:
    """A folder with a model, and which batches it has learnt."""

    def __init__(self, folder: Path, seed: int, fork: bool, shown: bool) -> None:
        self.shown = shown  # print progress
        self.folder, self.chance, self.fork = folder, random.Random(seed), fork
        self.learnt: list[int] = []
        self.process: subprocess.Popen[bytes] | None = None
        self.seen: Counter[str] = Counter()
        self.seconds = 0.3 if fork else 1.0  # that a command takes, measured as it goes
        folder.mkdir(parents=True)
        if fork:
            import_program()
        rng = np.random.default_rng(seed)
        for name, rows in [("first", FIRST), *((f"batch{i}", ROWS) for i in range(BATCHES))]:
            labels = rng.integers(3, size=rows)
            values = rng.normal(labels[:, None], 1.0, (rows, 3))
            lines = [f"{x:.6f},{y:.6f},{z:.6f},{label}\n" for (x, y, z), label in zip(values, CLASSES[labels])]
            (folder / f"{name}.csv").write_text("x,y,z,label\n" + "".join(lines))
        GenerativeClassifier(ledger=True).fit(str(folder / "first.csv"), "label").save(folder / MODEL)
        for name in ("fitted", "merged"):
            (folder / f"{name}.deciban").write_bytes((folder / MODEL).read_bytes())
        self.original = load(folder / MODEL)

    def run(self, kills: int) -> None:
        while self.seen["killed"] < kills:
            self.step()
            if self.shown and self.seen["killed"] % 50 == 0:
                print(f"{self.folder.name}: {self.seen['killed']} killed", file=sys.stderr)
        self.check_sums()

    def step(self) -> None:
        """One command, its kill, and the checks."""
        kind = self.chance.choices(["learn", "unlearn", "fit", "merge"], [6, 4 * bool(self.learnt), 1, 1])[0]
        target = {"fit": "fitted.deciban", "merge": "merged.deciban"}.get(kind, MODEL)
        batch = self.chance.choice(self.learnt) if kind == "unlearn" else self.chance.randrange(BATCHES)
        arguments = {
            "fit": ["fit", "first.csv", "--label", "label", "-o", target],
            "merge": ["merge", MODEL, MODEL, "-o", target],
        }.get(kind, [kind, MODEL, f"batch{batch}.csv"])
        before = (self.folder / target).read_bytes()
        left_before = set(leftovers(self.folder / target))
        killed = self.run_and_kill(arguments, target)
        left = set(leftovers(self.folder / target))
        if killed is None:  # it ended before it was killed
            assert not left, left
        self.seen["temporary file left"] += bool(left - left_before)
        found = load(self.folder / target, verify=True)
        changed = (self.folder / target).read_bytes() != before
        assert changed or killed is not None or kind in ("fit", "merge"), "success, but the file is unchanged"
        self.seen["killed"] += killed is not None
        self.seen[f"{kind}, {'new' if changed else 'old'}"] += 1
        if kind in ("learn", "unlearn"):
            if changed:
                self.learnt.append(batch) if kind == "learn" else self.learnt.remove(batch)
            rows = FIRST + ROWS * len(self.learnt)
            assert found.stats_.rows.sum() == rows, (kind, changed, found.stats_.rows.sum(), rows)
            assert len(found.ledger_) == rows

    def run_and_kill(self, arguments: list[str], target: str) -> bool | None:
        """Run a command and kill it; None if it ended before, which must have been a success."""
        started = time.monotonic()
        child = self.start(arguments)
        if self.chance.random() < 0.5:
            moment = started + self.chance.uniform(0, 1.1 * self.seconds)
            status = self.wait(child, lambda: time.monotonic() >= moment)
        else:
            left = set(leftovers(self.folder / target))
            status = self.wait(child, lambda: set(leftovers(self.folder / target)) - left)
            time.sleep(self.chance.expovariate(1 / 0.002))
        if status is None:
            status = self.kill(child)
        code = os.waitstatus_to_exitcode(status)
        if self.process is not None:
            self.process.returncode = code
        if code == 0:
            self.seconds += 0.1 * (time.monotonic() - started - self.seconds)
            return None
        assert code == -signal.SIGKILL, (arguments, code)
        return True

    def start(self, arguments: list[str]) -> int:
        if not self.fork:
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
            # kept, because Python waits for a process whose object is deleted
            self.process = subprocess.Popen([*PROGRAM, *arguments], cwd=self.folder, env=environment(), **quiet)
            return self.process.pid
        child = os.fork()
        if not child:
            os.chdir(self.folder)
            nowhere = os.open(os.devnull, os.O_RDWR)
            for number in range(3):
                os.dup2(nowhere, number)
            run_as_program(arguments)
        return child

    @staticmethod
    def wait(child: int, until) -> int | None:
        """Wait for a moment; the status of the process if it ended before."""
        end = time.monotonic() + 120
        while not until():
            found, status = os.waitpid(child, os.WNOHANG)
            if found:
                return status
            assert time.monotonic() < end, "it hangs"
            time.sleep(0.0005)
        return None

    @staticmethod
    def kill(child: int) -> int:
        os.kill(child, signal.SIGKILL)
        return os.waitpid(child, 0)[1]

    def check_sums(self) -> None:
        """The model equals one that learnt the same batches undisturbed; no temporary file stays."""
        clf = self.original
        for batch in self.learnt:
            clf.learn(str(self.folder / f"batch{batch}.csv"), "label")
        found = load(self.folder / MODEL)
        assert len(found.ledger_) == len(clf.ledger_)
        np.testing.assert_array_equal(found.stats_.rows, clf.stats_.rows)
        asked = str(self.folder / "first.csv")
        np.testing.assert_allclose(found.predict_proba(asked), clf.predict_proba(asked), rtol=1e-6, atol=1e-9)
        for target in (MODEL, "fitted.deciban", "merged.deciban"):
            found.save(self.folder / target)
            assert not leftovers(self.folder / target)


def campaign(kills: int, lanes: int, fork: bool, seed: int = 0, shown: bool = False) -> Counter[str]:
    """Kill the program `kills` times, in several folders at the same time; the counts of what was seen."""
    with tempfile.TemporaryDirectory() as place:
        every = [Lane(Path(place, str(i)), seed + i, fork, shown) for i in range(lanes)]
        failures: list[BaseException] = []

        def work(lane: Lane) -> None:
            try:
                lane.run(-(-kills // lanes))
            except BaseException as error:
                failures.append(error)

        if lanes == 1:
            every[0].run(kills)
        else:
            threads = [threading.Thread(target=work, args=(lane,)) for lane in every]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        if failures:
            raise failures[0]
        total: Counter[str] = Counter()
        for lane in every:
            total.update(lane.seen)
        return total


def main() -> None:
    """Run the campaign and print what was seen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kills", type=int, nargs="?", default=1000)
    parser.add_argument("--lanes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fork", action="store_true", help="commands are forks of this process: quicker; one lane")
    given = parser.parse_args()
    seen = campaign(given.kills, 1 if given.fork else given.lanes, given.fork, given.seed, shown=True)
    for name, number in sorted(seen.items()):
        print(f"{number:6,}  {name}")


if __name__ == "__main__":
    main()
