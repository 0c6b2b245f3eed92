"""The guard: which requests it admits, and its response to each attack."""

import json
import socket
import time
from pathlib import Path

import pytest

from deciban.errors import UsageError
from deciban.service.server import Rate, allowed_hosts, is_loopback, read_tokens
from program import process
from service.running import Running, raw, wait_until

READER, TEACHER = "reader-token-0123456789", "teacher-token-0123456789"
SCRIPT = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def guarded(models, tmp_path_factory):
    import shutil

    folder = tmp_path_factory.mktemp("guarded")
    path = Path(shutil.copy(models / "animals.deciban", folder / "animals.deciban"))
    (folder / "tokens").write_text(f"read {READER}\nteach {TEACHER} ada  # her own\n")
    options = ("--tokens", str(folder / "tokens"), "--most-mb", "1", "--most-rows", "100")
    with Running(path, *options) as service:
        yield service


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


# -- tokens ------------------------------------------------------------------------------------------------------------
def test_tokens_for_reading_and_teaching_are_apart(guarded):
    row = {"row": {"weight": 3.5}}
    lesson = {**row, "label": "cat", "who": "eve"}
    assert guarded.client.post("/predict", json=row).status_code == 401
    assert guarded.client.get("/model").headers["www-authenticate"] == "Bearer"
    guarded.post("/predict", row, 401, headers=bearer("wrong-token-0123456789"))
    guarded.post("/predict", row, headers=bearer(READER))
    for path in ("/learn", "/unlearn", "/undo", "/erase", "/classes", "/correct", "/unsure"):
        assert "not teaching" in guarded.post(path, lesson, 403, headers=bearer(READER))["detail"]
    guarded.post("/predict", {**row, "collect": True}, 403, headers=bearer(READER))
    guarded.post("/learn", lesson, headers=bearer(TEACHER))
    lessons = guarded.get("/history", headers=bearer(READER))["lessons"]
    assert [(one["who"], one["labels"]) for one in lessons] == [("ada", ["cat"])]
    assert guarded.get("/health")["status"] == "ok"
    assert guarded.client.get("/").status_code == 200


def test_other_machines_need_tokens(texts_model):
    done = process(texts_model.parent, "serve", "texts.deciban", "--host", "0.0.0.0")
    assert done.code == 2
    assert "tokens are needed" in done.err


def test_a_file_of_tokens_is_checked(tmp_path):
    for text, match in (("write abcdefghijklmnop", "line 1"), ("read short", "16"), ("# none", "no token")):
        (tmp_path / "tokens").write_text(text)
        with pytest.raises(UsageError, match=match):
            read_tokens(tmp_path / "tokens")


# -- attacks -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost:80@evil.example", ""])
def test_a_wrong_host_is_refused(running, host):
    assert running.client.post("/predict", json={"text": "a"}, headers={"Host": host}).status_code in (400, 421)


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:1", "file://"])
def test_a_page_of_another_origin_is_refused(running, origin):
    assert (
        running.client.post("/learn", json={"text": "a", "label": "ham"}, headers={"Origin": origin}).status_code == 403
    )
    assert running.client.get("/model", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert running.client.get("/model", headers={"Origin": running.address}).status_code == 200


def test_a_form_of_another_page_cannot_teach(running):
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        answer = running.client.post("/learn", content='{"text": "a", "label": "ham"}', headers={"Content-Type": kind})
        assert answer.status_code == 415
    assert running.client.post("/learn", content=b"").status_code == 415


def test_a_huge_body_is_refused_before_it_is_read(guarded):
    host = guarded.address.removeprefix("http://")
    head = f"POST /predict HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {READER}\r\n"
    head += "Content-Type: application/json\r\n"
    answer = raw(guarded.address, (head + "Content-Length: 99999999999\r\n\r\n").encode())
    assert answer.startswith(b"HTTP/1.1 413")
    chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    answer = raw(guarded.address, (head + "Transfer-Encoding: chunked\r\n\r\n").encode() + chunk * 17)
    assert b"413" in answer.split(b"\r\n")[0]
    rows = {"rows": [{"weight": 1}] * 101}
    assert guarded.post("/predict", rows, 413, headers=bearer(READER))["status"] == 413


def test_slow_clients_do_not_starve_others(running):
    host, port = running.address.removeprefix("http://").split(":")
    head = f"POST /predict HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
    head += "Content-Length: 1000\r\n\r\n"
    slow = [socket.create_connection((host, int(port))) for _ in range(150)]
    try:
        for at, connection in enumerate(slow):
            connection.sendall(head.encode()[: 30 if at % 2 else None])  # a third of the head, or no body
        start = time.perf_counter()
        for _ in range(20):
            running.post("/predict", {"text": "free lunch"})
        assert time.perf_counter() - start < 5
    finally:
        for connection in slow:
            connection.close()


def test_large_bodies_together_have_a_limit_and_small_ones_are_answered(running):
    host, port = running.address.removeprefix("http://").split(":")
    head = f"POST /predict HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
    large = '{"text": "free lunch"}' + " " * 4_000_000
    kind = {"Content-Type": "application/json"}

    def status():
        return running.client.post("/predict", content=large, headers=kind).status_code

    assert status() == 200
    slow = []

    def refused_beside_slow_ones():
        """Whether a large request is refused, after the head of one more slow request, whose body does not come."""
        slow.append(socket.create_connection((host, int(port))))
        slow[-1].sendall(f"{head}Content-Length: 8100000\r\n\r\n".encode())
        return len(slow) > 30 and status() == 503

    try:
        wait_until(refused_beside_slow_ones)
        running.post("/predict", {"text": "free lunch"})
    finally:
        for connection in slow:
            connection.close()
    wait_until(lambda: status() == 200)


def test_a_slow_body_and_a_slow_head_are_ended(texts_model):
    import asyncio

    from deciban.service.messages import Limits, RequestError, read_body

    async def drip():
        await asyncio.sleep(0.01)
        return {"type": "http.request", "body": b" ", "more_body": True}

    with pytest.raises(RequestError, match=r"did not arrive within 0\.1") as refused:
        asyncio.run(read_body(drip, None, Limits(body_seconds=0.1)))
    assert refused.value.status == 408


def test_a_client_that_does_not_read_its_answer_is_ended(monkeypatch):
    import asyncio

    import uvicorn

    from deciban.service import server

    async def large(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"50000000")]})
        await send({"type": "http.response.body", "body": b" " * 50_000_000})

    async def connections_after(seconds_of_a_pause):
        """Read an answer, with a pause after each piece; return the bytes that were read, and the open connections."""
        listening = server.listen("127.0.0.1", 0)
        config = uvicorn.Config(large, http=server.TimedProtocol, log_config=None, lifespan="off")
        running = server.Server(config)
        serving = asyncio.create_task(running.serve(sockets=[listening]))
        reader, writer = await asyncio.open_connection(*listening.getsockname())
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        found = 0
        try:
            while found < 50_000_000 and (part := await reader.read(2_000_000)):
                found += len(part)
                await asyncio.sleep(seconds_of_a_pause)
        except ConnectionError:
            pass
        held = len(running.server_state.connections)
        writer.close()
        running.should_exit = True
        await serving
        return found, held

    monkeypatch.setattr(server, "UNREAD_SECONDS", 0.3)
    found, held = asyncio.run(connections_after(2.0))
    assert found < 50_000_000
    assert held == 0
    found, held = asyncio.run(connections_after(0.001))
    assert found >= 50_000_000
    assert held == 1


def test_deep_json_nan_and_nonsense_are_refused(running):
    bodies = {
        "[" * 100_000: 400,
        '{"a":' * 100_000: 400,
        '{"rows": [NaN]}': 400,
        '{"rows": [1e999]}': 400,
        '{"text": "a", "text": "b"}': 400,
        '{"prior": {"ham": 1' + "0" * 5000 + '}, "text": "a"}': 400,
        "": 400,
        "null": 400,
        "[]": 400,
        '{"rows": []}': 422,
        '{"rows": {}}': 422,
        '{"rows": "free"}': 422,
        '{"text": 5}': 422,
        '{"text": null}': 422,
        '{"text": "\\ud800"}': 422,
        '{"text": "a", "unsure": "much"}': 422,
        '{"text": "a", "unsure": 7}': 422,
        '{"text": "a", "unsure": 1' + "0" * 400 + "}": 422,
        '{"text": "a", "prior": {"ham": 1' + "0" * 400 + "}}": 422,
        '{"text": "a", "cost": [["ham", "spam", 1' + "0" * 400 + "]]}": 422,
        '{"text": "a", "cost": [[1]]}': 422,
        '{"text": "a", "cost": [["ham", "spam", -1]]}': 422,
        '{"text": "a", "prior": {"ham": 2}}': 422,
        '{"text": "a", "unit": "stone"}': 422,
        '{"text": "a", "over": []}': 422,
        '{"text": "a", "after": -5.5}': 422,
        '{"text": "a", "after": "x"}': 422,
    }
    for body, status in bodies.items():
        answer = running.client.post("/predict", content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code == status, (body[:60], answer.text)
        assert answer.headers["content-type"] == "application/problem+json"
    answer = running.client.post("/predict", content=b"\xff\xfe{", headers={"Content-Type": "application/json"})
    assert answer.status_code == 400


def test_ten_thousand_columns_are_refused(table):
    problem = table.post("/predict", {"row": {f"column {n}": n for n in range(10_000)}}, 422)
    assert "column 0" in problem["detail"]
    assert len(problem["detail"]) < 1000


@pytest.mark.parametrize(
    "path",
    [
        "/page/../../app.py", "/page/..%2f..%2fapp.py", "/page/%2e%2e/app.py", "//etc/passwd", "/etc/passwd",
        "/page/app.py", "/page/", "/page/index.html%00.js", "/predict/../model", "/model/", "/texts.deciban",
    ],
)  # fmt: skip
def test_no_path_of_a_request_reaches_a_file(running, path):
    host = running.address.removeprefix("http://")
    answer = raw(running.address, f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    assert answer.split(b"\r\n")[0].split()[1] in (b"404", b"400", b"405")
    assert b"root:" not in answer
    assert b"import" not in answer


def test_scripts_in_any_text_are_only_ever_data(texts_model):
    with Running(texts_model) as service:
        service.post("/learn", {"text": SCRIPT, "label": SCRIPT, "who": SCRIPT})
        service.post("/classes", {"rename": "ham", "to": f"{SCRIPT}2", "who": SCRIPT})
        service.post("/learn", {"text": "a", "label": "ham", "who": "a\nb"}, 422)
        service.post("/learn", {"text": "a", "label": "x" * 201}, 422)
        service.post("/learn", {"text": "a", "label": ""}, 422)
        answers = [
            service.client.get("/history"),
            service.client.get("/model?after=2"),
            service.client.get(f"/unsure?most={SCRIPT}"),
            service.client.get(f"/{SCRIPT}"),
            service.client.post("/predict", json={"text": SCRIPT, SCRIPT: 1}),
            service.client.post("/predict", json={"text": SCRIPT, "prior": {SCRIPT: 7}}),
            service.client.post("/explain", json={"text": SCRIPT, "over": SCRIPT}),
        ]
        for answer in answers:
            kind = answer.headers["content-type"]
            assert kind in ("application/json", "application/problem+json")
            assert answer.headers["x-content-type-options"] == "nosniff"
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy


def test_headers_given_twice_and_bad_keys_are_refused(running):
    host = running.address.removeprefix("http://")
    twice = f"GET /model HTTP/1.1\r\nHost: {host}\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
    assert raw(running.address, twice.encode()).startswith(b"HTTP/1.1 400")
    answer = running.client.post("/learn", json={"text": "a", "label": "ham"}, headers={"Idempotency-Key": "x" * 201})
    assert answer.status_code == 400


def test_a_client_that_asks_too_often_is_told_when_to_come_back(texts_model):
    with Running(texts_model, "--rate", "5") as service:
        answers = [service.client.get("/health") for _ in range(60)]
        assert {answer.status_code for answer in answers} == {200, 429}
        refused = next(answer for answer in answers if answer.status_code == 429)
        assert int(refused.headers["retry-after"]) >= 1
        assert json.loads(refused.text)["title"] == "Too many requests"


def test_rates_are_kept_for_each_client():
    rate = Rate(2.0, 4.0)
    assert [rate.seconds_to_wait("a", 0.0) > 0 for _ in range(5)] == [False] * 4 + [True]
    assert rate.seconds_to_wait("b", 0.0) == 0
    assert rate.seconds_to_wait("a", 0.6) == 0
    assert rate.seconds_to_wait("a", 0.6) > 0
    assert Rate(0.0, 0.0).seconds_to_wait("a", 0.0) == 0


def test_names_of_this_machine():
    assert is_loopback("::1")
    assert not is_loopback("192.168.1.5")
    assert not is_loopback("example.org")
    assert "[::1]" in allowed_hosts("127.0.0.1")
    assert "0.0.0.0" not in allowed_hosts("0.0.0.0")
    assert "Mine.example".lower() in allowed_hosts("127.0.0.1", ["Mine.example"])
