"""Time of one mail through `deciban filter`, with and without a running service: CPU seconds of client and service.

    PYTHONPATH=tests python benchmarks/mail_filter.py --mails 200

Commands take turns, so that other work on the machine slows all of them. As in an installation, the package is compiled
to bytecode before; the command `deciban` is the script that pip writes.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd

from deciban import GenerativeClassifier
from service.running import Running

MAIL = b"From: b@example.org\nSubject: lunch\n\nlunch with the team at noon\n"
# The console script of pip since version 25.2, and of uv. Scripts of pip before that import `re` first.
SCRIPT = "#!{python}\n{first}import sys\nfrom deciban.cli import main\nsys.exit(main())\n"
SELDOM = 20  # one mail in so many goes through the command that loads the model


def model(path: Path) -> Path:
    """A model of mail with two classes."""
    words = {"spam": "cheap pills buy now win prize", "ham": "lunch team noon meeting report agenda"}
    rows = [
        {"subject": text[:12], "from": "x@example.org", "body": f"{text} {k}", "label": label}
        for k in range(100)
        for label, text in words.items()
    ]
    kinds = {"subject": "text", "from": "text", "body": "text"}
    GenerativeClassifier(kinds=kinds).fit(pd.DataFrame(rows), "label").save(path)
    return path


def script(path: Path, first: str = "") -> str:
    """Write a console script."""
    path.write_text(SCRIPT.format(python=sys.executable, first=first))
    path.chmod(0o755)
    return str(path)


def service_seconds(pid: int) -> float:
    """CPU seconds of a process so far, to the nanosecond of the scheduler."""
    return sum(int((task / "schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir()) / 1e9


def measure(command: list[str], environment: dict[str, str], pid: int) -> tuple[float, float, float]:
    """CPU seconds of the client, CPU seconds of the service and elapsed seconds of one mail."""
    own, before, begun = service_seconds(pid), resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, input=MAIL, capture_output=True, check=True, env=environment)
    elapsed, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    client = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return client, service_seconds(pid) - own, elapsed


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mails", type=int, default=200)
    mails = parser.parse_args().mails
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = model(folder / "mail.deciban")
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        environment["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
        with Running(path) as service:
            arguments = ["filter", str(path)]
            by_service = [*arguments, "--service", service.address]
            curl = ["curl", "-sf", "--data-binary", "@-", "-H", "Content-Type: message/rfc822"]
            commands = {
                "python -c pass": [sys.executable, "-c", "pass"],
                "deciban filter --service": [script(folder / "new"), *by_service],
                "the same, script of pip before 25.2": [script(folder / "old", "import re\n"), *by_service],
                "python -m deciban filter --service": [sys.executable, "-m", "deciban", *by_service],
                "curl --version": ["curl", "--version"],
                "curl, POST /filter": [*curl, f"{service.address}/filter"],
                "deciban filter": [str(folder / "new"), *arguments],
            }
            spent: dict[str, list[tuple[float, float, float]]] = {name: [] for name in commands}
            for turn in range(-1, mails):
                for name, command in commands.items():
                    if command[1:] == arguments and turn % SELDOM:
                        continue
                    one = measure(command, environment, service.process.pid)
                    if turn >= 0:  # the first turn writes the bytecode
                        spent[name].append(one)
            print(f"{'milliseconds, medians':<36}{'client CPU':>12}{'fastest':>9}{'service CPU':>13}{'elapsed':>9}")
            for name, times in spent.items():
                client, own, elapsed = (1e3 * statistics.median(column) for column in zip(*times, strict=True))
                least = 1e3 * min(times)[0]
                print(f"{name:<36}{client:>12.1f}{least:>9.1f}{own:>13.1f}{elapsed:>9.1f}")


if __name__ == "__main__":
    main()
