"""Time of one mail through `deciban filter`, with and without a running service: CPU seconds of client and service.

PYTHONPATH=tests python benchmarks/mail_filter.py --mails 50
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


def service_seconds(pid: int) -> float:
    """CPU seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(command: list[str], mails: int) -> tuple[float, float]:
    """Medians of CPU and elapsed seconds of the client."""
    cpu, elapsed = [], []
    for _ in range(mails):
        before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, input=MAIL, capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        elapsed.append(time.perf_counter() - begun)
        cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(cpu), statistics.median(elapsed)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mails", type=int, default=50)
    mails = parser.parse_args().mails
    with tempfile.TemporaryDirectory() as folder:
        path = model(Path(folder) / "mail.deciban")
        with Running(path) as service:
            program = [sys.executable, "-m", "deciban", "filter", str(path)]
            curl = ["curl", "-sf", "--data-binary", "@-", "-H", "Content-Type: message/rfc822"]
            for name, command in {
                "curl, POST /filter": [*curl, f"{service.address}/filter"],
                "deciban filter --service": [*program, "--service", service.address],
                "deciban filter": program,
            }.items():
                before = service_seconds(service.process.pid)
                cpu, elapsed = measure(command, mails)
                own = (service_seconds(service.process.pid) - before) / mails
                spent = f"client {1e3 * cpu:6.1f} ms CPU, service {1e3 * own:5.1f} ms CPU, {1e3 * elapsed:6.1f} ms"
                print(f"{name:<26} {spent}")


if __name__ == "__main__":
    main()
