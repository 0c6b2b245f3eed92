"""The commands of docs/howto/service.md print what the page shows; they are run in one shell, in the page's order.

`PYTHONPATH=src:tests python tests/service/test_howto.py` writes the answers into the page.
"""

import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from deciban.demo import write_table
from program import environment, process

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "service.md"
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
VARYING = re.compile(r',"asked":(true|false)')  # there if the row is in the random sample, which a secret decides
NUMBER = re.compile(r"-?\d+\.\d+(e-?\d+)?")


def free_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def commands(block):
    return [part.split("\n", 1)[0] for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]


def transcript(folder: Path, text: str) -> list[str]:
    """The blocks of the page, with what the commands print now."""
    write_table(folder)
    process(folder, "fit", "tumours.csv", "--label", "diagnosis")
    (folder / "deciban").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m deciban "$@"\n')
    (folder / "deciban").chmod(0o755)
    port = free_port()
    path = f"{folder}:{environment()['PATH']}"
    server, blocks = None, []
    try:
        for block in BLOCK.findall(text):
            lines = []
            for command in commands(block):
                run = command.replace("localhost:8000", f"localhost:{port}")
                if command.endswith(" &"):
                    words = shlex.split(run[:-2])
                    server = subprocess.Popen(
                        [str(folder / words[0]), *words[1:], "--port", port],
                        cwd=folder, env=environment(PATH=path), stdout=subprocess.PIPE, text=True,
                    )  # fmt: skip
                    shown = server.stdout.readline().replace(f":{port}/", ":8000/")
                elif command == "kill %1":
                    server.terminate()
                    shown = ""
                else:
                    done = subprocess.run(
                        ["bash", "-c", run], cwd=folder, env=environment(PATH=path), capture_output=True, check=False
                    )
                    shown = done.stdout.decode() + done.stderr.decode()
                    shown += "\n" if shown and not shown.endswith("\n") else ""
                lines.append(f"$ {command}\n{shown}")
            blocks.append("".join(lines))
    finally:
        if server is not None:
            server.terminate()
            server.wait(20)
            server.stdout.close()
    return blocks


def comparable(text: str) -> str:
    return NUMBER.sub(lambda found: f"{float(found[0]):.4g}", VARYING.sub("", text))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_page_shows_what_happens(tmp_path):
    text = PAGE.read_text()
    for shown, now in zip(BLOCK.findall(text), transcript(tmp_path, text), strict=True):
        assert comparable(now) == comparable(shown)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        given = PAGE.read_text()
        made = iter(transcript(Path(name), given))
        PAGE.write_text(BLOCK.sub(lambda found: f"```console\n{next(made)}```", given))
