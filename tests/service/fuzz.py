"""Schemathesis over the description of a running service: no answer may be a 5xx.

python tests/service/fuzz.py --examples 200
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import deciban
from service.conftest import animals, texts
from service.running import Running

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--examples", type=int, default=200)
    given = parser.parse_args()
    program = Path(sys.executable).with_name("schemathesis")
    codes = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        animals().write_csv(folder / "animals.csv")
        deciban.GenerativeClassifier(ledger=True).fit(*texts()).save(folder / "texts.deciban")
        table = deciban.GenerativeClassifier(ledger=True).fit(folder / "animals.csv", "kind")
        table.save(folder / "animals.deciban")
        for model in ("texts", "animals"):
            with Running(folder / f"{model}.deciban") as service:
                address = f"{service.address}/openapi.json"
                options = ["--checks", CHECKS, "--max-examples", str(given.examples), "--phases", "fuzzing,coverage"]
                codes.append(subprocess.run([program, "run", address, *options], cwd=folder, check=False).returncode)
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
