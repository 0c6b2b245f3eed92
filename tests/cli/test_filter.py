"""`deciban filter`: a mail passes through with one header more, by a model file, a service, and maildrop."""

import os
import re
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import deciban
from deciban import GenerativeClassifier
from deciban.read.mail import with_header
from program import environment
from service.running import Running

pytestmark = pytest.mark.slow

SPAM = b"From: a@example.org\nSubject: cheap pills\nX-Deciban: ham; 99 dban; unsure=no\n\nbuy cheap pills now \xff\n"
SOURCE = Path(deciban.__file__).parents[1]
PAGE = Path(__file__).parents[2] / "docs" / "howto" / "mail.md"
HAM = b"From: b@example.org\nSubject: lunch\n\nlunch with the team at noon\n"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    rng = np.random.default_rng(0)
    rows = []
    for k in range(120):
        words = "cheap pills buy now win" if k % 2 else "lunch team noon meeting report"
        text = " ".join(rng.choice(words.split(), 8))
        rows.append({"subject": text[:12], "from": "x@example.org", "body": text, "label": "spam" if k % 2 else "ham"})
    path = tmp_path_factory.mktemp("mail") / "mail.deciban"
    kinds = {"subject": "text", "from": "text", "body": "text"}
    GenerativeClassifier(kinds=kinds).fit(pd.DataFrame(rows), "label").save(path)
    return path


def run(*arguments, message):
    command = [sys.executable, "-m", "deciban", "filter", *map(str, arguments)]
    return subprocess.run(command, input=message, capture_output=True, env=environment(), check=False)


def test_a_mail_gets_one_header_and_is_otherwise_unchanged(model):
    done = run(model, "--exit-code", "spam=99", message=SPAM)
    assert done.returncode == 99, done.stderr
    first, _, rest = done.stdout.partition(b"\n")
    assert first.startswith(b"X-Deciban: spam; ")
    assert first.endswith(b" dban; unsure=no")
    assert int(first.split()[2]) > 10
    assert rest == SPAM.replace(b"X-Deciban: ham; 99 dban; unsure=no\n", b"")


def test_the_evidence_is_that_of_decide(model):
    from deciban import load
    from deciban.read.mail import fields_of

    made = load(model).decide(pd.DataFrame([fields_of(HAM)]))
    done = run(model, message=HAM)
    assert done.returncode == 0
    wanted = f"X-Deciban: {made.label[0]}; {made.llr[0] * 10 / np.log(10):.0f} dban; unsure=no\n"
    assert done.stdout == wanted.encode() + HAM


def test_an_unsure_mail_is_marked_and_has_no_exit_code(model):
    done = run(model, "--unsure", "1", "--exit-code", "ham=7", message=HAM)
    assert done.returncode == 0
    assert done.stdout.split(b"\n")[0].endswith(b"unsure=yes")


def test_a_message_that_cannot_be_read_passes_through(model):
    done = run(model, message=b"Subject: x\n\nzero \0 byte\n")
    assert done.stdout.endswith(b"Subject: x\n\nzero \0 byte\n")
    assert done.returncode == 0


def test_without_a_model_nothing_is_written(tmp_path):
    done = run(tmp_path / "absent.deciban", message=HAM)
    assert done.returncode == 2
    assert done.stdout == b""


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (b"From a@b Mon\nSubject: x\n\nbody\n", b"From a@b Mon\nX-Deciban: v\nSubject: x\n\nbody\n"),
        (b"Subject: x\r\nx-DECIBAN : old\r\n\tmore\r\nTo: y\r\n\r\nb", b"X-Deciban: v\r\nSubject: x\r\nTo: y\r\n\r\nb"),
        (b"\nonly a body\n", b"X-Deciban: v\n\nonly a body\n"),
        (b"", b"X-Deciban: v\n"),
        (b"Subject: no end", b"X-Deciban: v\nSubject: no end"),
    ],
)
def test_the_header_is_put_in_front(message, expected):
    assert with_header(message, "v") == expected


@pytest.fixture
def service():
    """A service that answers as `deciban serve` does, and keeps what it was asked."""
    asked, answers = [], {"spam": (200, "spam; 32 dban; unsure=no")}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            message = self.rfile.read(int(self.headers["Content-Length"]))
            asked.append((self.path, self.headers["Authorization"], self.headers["Content-Type"], message))
            status, value = answers["spam"]
            body = with_header(message, value)
            self.send_response(status)
            self.send_header("X-Deciban", value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", asked, answers
    server.shutdown()
    server.server_close()


# with --threads the complete command runs; without, the client that imports hardly anything
@pytest.mark.parametrize("more", [(), ("--threads", "1")], ids=["quick", "complete"])
def test_a_running_service_is_asked_instead_of_the_file(service, tmp_path, more):
    url, asked, _ = service
    (tmp_path / "token").write_text("secret\n")
    given = ("--service", url, "--token-file", tmp_path / "token", "--unsure=0.99", "--exit-code", "spam=99")
    done = run("absent", *given, *more, message=SPAM)
    assert done.stdout == with_header(SPAM, "spam; 32 dban; unsure=no"), done.stderr
    assert done.returncode == 99
    assert asked == [("/filter?unsure=0.99", "Bearer secret", "message/rfc822", SPAM)]


@pytest.mark.parametrize("more", [(), ("--threads", "1")], ids=["quick", "complete"])
@pytest.mark.parametrize("answer", [None, (500, "spam; 32 dban; unsure=no"), (200, "what?")])
def test_a_service_that_does_not_answer_is_replaced_by_the_file(model, service, answer, more):
    url, asked, answers = service
    answers["spam"] = answer
    url = url if answer else "http://127.0.0.1:1"
    done = run(model, "--service", url, "--exit-code", "ham=7", *more, message=HAM)
    assert done.stdout == run(model, message=HAM).stdout
    assert done.returncode == 7
    assert done.stderr.count(b"does not answer") == 1
    assert len(asked) == (answer is not None)


def test_wrong_arguments_are_reported_before_the_service_is_asked(model, service, tmp_path):
    url, asked, _ = service
    (tmp_path / "two").write_text("one token\nanother\n")
    for wrong, named in (
        (("--service", "ftp://x"), b"is not an address such as"),
        (("--service", url, "--exit-code", "spam=0"), b"from 1 to 125"),
        (("--service", url, "--unsure", "2"), b"--unsure"),
        (("--service", url, "--token-file", tmp_path / "two"), b"does not hold one token"),
        (("--service", url, "--prior", "spam=0.1"), b"contradict"),
    ):
        done = run(model, *wrong, message=HAM)
        assert (done.returncode, done.stdout) == (2, b"")
        assert named in done.stderr
    assert asked == []


def test_a_mail_through_the_service_imports_hardly_anything(service):
    url, _, _ = service
    code = (
        "import os, sys\nfrom deciban.cli import main\n"
        f"sys.argv = ['deciban', 'filter', 'absent', '--service', {url!r}]\n"
        "os._exit = lambda code: sys.exit(f'{code} {sorted(sys.modules)}')\nmain()"
    )
    # without site, as files of the environment may import modules
    command = [sys.executable, "-S", "-E", "-c", f"import sys; sys.path.insert(0, {str(SOURCE)!r})\n{code}"]
    done = subprocess.run(command, input=HAM, capture_output=True, check=False)
    assert done.stdout == with_header(HAM, "spam; 32 dban; unsure=no"), done.stderr
    loaded = done.stderr.decode()
    assert loaded.startswith("0 ")
    assert "'_socket'" in loaded
    for name in (
        "socket",
        "enum",
        "typing",
        "json",
        "re",
        "email",
        "http",
        "urllib",
        "typer",
        "numpy",
        "contextlib",
        "deciban.errors",
    ):
        assert f"'{name}'" not in loaded


def recipes() -> list[str]:
    """The recipes of the page: the complete one, and the same with each of the other first lines."""
    blocks = re.findall(r"```text\n(xfilter.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    first, rest = blocks[0].split("\n", 1)
    return [f"{line}\n{rest}" for line in (first, *(block.strip() for block in blocks[1:]))]


@pytest.mark.skipif(shutil.which("maildrop") is None, reason="maildrop is not installed")
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_recipes_for_maildrop_deliver_to_maildirs(model, tmp_path):
    tool, home = tmp_path / "deciban", tmp_path / "home"
    tool.write_text(f'#!/bin/sh\nexec {sys.executable} -m deciban "$@"\n')
    tool.chmod(0o755)
    home.mkdir()
    shutil.copy(model, home / "spam.deciban")
    shutil.copy(model, tmp_path / "served.deciban")
    settings = {**environment(), "HOME": str(home), "LOGNAME": os.environ.get("LOGNAME", "root")}
    file, by_service, by_curl = recipes()
    assert "--service" in by_service
    assert "curl" in by_curl
    with Running(tmp_path / "served.deciban") as service:
        for number, text in enumerate((file, by_service, by_curl)):
            for folder in ("Maildir", "Maildir/.Spam"):
                shutil.rmtree(home / folder, ignore_errors=True)
                for name in ("cur", "new", "tmp"):
                    (home / folder / name).mkdir(parents=True)
            recipe = tmp_path / f"mailfilter{number}"
            text = text.replace("http://127.0.0.1:8000", service.address).replace("/home/ada", str(home))
            recipe.write_text(text.replace('"deciban filter', f'"{tool} filter'))
            recipe.chmod(0o600)
            for message in (SPAM, HAM):
                command = ["maildrop", str(recipe)]
                done = subprocess.run(command, input=message, capture_output=True, env=settings, check=False)
                assert done.returncode == 0, done.stderr
            [spam] = (home / "Maildir/.Spam/new").iterdir()
            [ham] = (home / "Maildir/new").iterdir()
            assert b"X-Deciban: spam; " in spam.read_bytes()
            assert spam.read_bytes().endswith(b"buy cheap pills now \xff\n")
            assert b"X-Deciban: ham; " in ham.read_bytes()
    # by curl, a mail that the service does not answer is kept, not delivered
    done = subprocess.run(["maildrop", str(recipe)], input=HAM, capture_output=True, env=settings, check=False)
    assert done.returncode == os.EX_TEMPFAIL
    assert len(list((home / "Maildir/new").iterdir())) == 1


def test_the_service_filters_as_the_program_does(model, tmp_path):
    shutil.copy(model, tmp_path / "mail.deciban")
    mail = {"Content-Type": "message/rfc822"}
    with Running(tmp_path / "mail.deciban") as service:
        for message in (SPAM, HAM, b"Subject: x\n\nzero \0 byte\n"):
            answer = service.client.post("/filter", content=message, headers=mail)
            assert answer.status_code == 200
            assert answer.content == run(model, message=message).stdout
            assert answer.headers["content-type"] == "message/rfc822"
        doubtful = service.client.post("/filter?unsure=1", content=HAM, headers=mail)
        assert doubtful.headers["x-deciban"].endswith("unsure=yes")
        assert service.client.post("/filter?unsure=2", content=HAM, headers=mail).status_code == 422
        assert service.client.post("/filter", content=HAM).status_code == 415
        if shutil.which("curl") is not None:
            command = ["curl", "-sf", "--data-binary", "@-", "-H", "Content-Type: message/rfc822"]
            done = subprocess.run([*command, f"{service.address}/filter"], input=HAM, capture_output=True, check=True)
            assert done.stdout == run(model, message=HAM).stdout
