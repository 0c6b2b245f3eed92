"""A file is there whole, or as it was: whatever happens to the writer, the disk, or other writers."""

import errno
import fcntl
import os
import random
import resource
import signal
import stat
import subprocess
import sys
import time

import numpy as np
import pytest

from deciban import Multinomial, load, save
from deciban.errors import SaveError
from deciban.store import files
from deciban.store.files import create_locked, leftovers, remove_if_abandoned, unlock, write_whole

# a process that forks writers, so that each needs no second to start: of `times` saves, or of as many as it lives for
WRITERS = """
import os, sys
import numpy as np
from deciban import Multinomial, save
print("ready", flush=True)
for line in sys.stdin:
    path, times, *widths = line.split()
    models = [Multinomial().fit(np.full((1, int(width)), float(width))) for width in widths]
    child = os.fork()
    if not child:
        for _ in range(int(times)):
            for model in models:
                save(model, path)
        os._exit(0)
    print(child, flush=True)
    if times == "1000000":
        os.waitpid(child, 0)
"""


@pytest.fixture(scope="module")
def writers():
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", WRITERS]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout.readline() == "ready\n"
        yield process
        process.stdin.close()


def start(writers, path, times, *widths):
    print(path, times, *widths, file=writers.stdin, flush=True)
    return int(writers.stdout.readline())


def model(width=50):
    """Every count is the width, so that a mixture of two files would show."""
    return Multinomial().fit(np.full((1, width), float(width)))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.deciban"


@pytest.mark.slow
def test_a_killed_writer_leaves_a_file_that_loads(path, writers):
    chance, seen, left, kills = random.Random(0), set(), 0, 0
    save(model(), path)
    while kills < 60 or (kills < 600 and not (len(seen) == 2 and left)):  # where cores are busy a moment is longer
        kills += 1
        writer = start(writers, path, 1000000, 200_000, 50)
        time.sleep(chance.uniform(0, 0.03))
        os.kill(writer, signal.SIGKILL)
        counts = load(path).stats.counts
        assert (counts == counts.shape[1]).all()
        seen.add(counts.shape[1])
        left = max(left, len(leftovers(path)))
    assert seen == {50, 200_000}  # it was killed at different moments
    assert left  # and in the middle of writing
    assert {each.name for each in path.parent.iterdir()} == {path.name, *(each.name for each in leftovers(path))}


def test_abandoned_files_go_with_the_next_save_and_those_of_running_writers_stay(path):
    abandoned, running, other = (
        path.with_name(f".{name}.{'0' * 15}{i}.deciban-tmp") for i, name in enumerate([path.name] * 2 + ["b"])
    )
    abandoned.write_bytes(b"half a model")
    other.write_bytes(b"half a model")
    descriptor, lock = create_locked(running, 0o600)
    os.close(descriptor)
    os.utime(running, (0, 0))
    save(model(), path)
    assert set(path.parent.iterdir()) == {path, running, other}
    unlock(lock)
    save(model(), path)
    assert set(path.parent.iterdir()) == {path, other}


def test_a_lock_goes_with_the_process_also_where_it_was_forked(path):
    descriptor, lock = create_locked(path, 0o600)
    child = os.fork()
    if not child:
        time.sleep(30)
        os._exit(0)
    try:
        os.close(descriptor)
        remove_if_abandoned(path)
        assert path.exists()
        unlock(lock)  # the child still has the descriptor
        remove_if_abandoned(path)
        assert not path.exists()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_temporary_file_that_is_removed_before_it_is_locked_is_made_again(path, monkeypatch):
    real, raced = fcntl.flock, []

    def flock(descriptor, operation):
        if not raced:
            raced.append(True)
            os.unlink(leftovers(path)[0])
        return real(descriptor, operation)

    monkeypatch.setattr(files.fcntl, "flock", flock)
    save(model(), path)
    assert load(path).stats.counts.shape[1] == 50
    assert list(path.parent.iterdir()) == [path]


def test_where_files_cannot_be_locked_leftovers_go_after_a_day(path, monkeypatch):
    monkeypatch.setattr(files, "fcntl", None)
    old, new, other = (
        path.with_name(f".{name}.{'0' * 15}{i}.deciban-tmp") for i, name in enumerate([path.name] * 2 + ["b"])
    )
    for each in (old, new, other):
        each.write_bytes(b"half a model")
    os.utime(old, (0, 0))
    os.utime(other, (0, 0))
    save(model(), path)
    assert set(path.parent.iterdir()) == {path, new, other}


def test_a_full_disk_leaves_the_old_file(path, monkeypatch):
    save(model(), path)
    before = path.read_bytes()
    real, room = os.write, [100_000]

    def write(descriptor, data):
        if room[0] < len(data):
            raise OSError(errno.ENOSPC, "No space left on device")
        room[0] -= len(data)
        return real(descriptor, data[: max(1, len(data) // 2)])  # a disk may also take less than it is given

    monkeypatch.setattr(files.os, "write", write)
    with pytest.raises(SaveError, match=r"disk is full.*old file is still there") as failure:
        save(model(200_000), path)
    assert failure.value.errno == errno.ENOSPC
    assert isinstance(failure.value, OSError)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_limit_on_file_size_leaves_the_old_file(path):
    save(model(), path)

    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    code = (
        "import sys\nimport numpy as np\nfrom deciban import Multinomial, save\n"
        "save(Multinomial().fit(np.ones((1, 200_000))), sys.argv[1])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, path], preexec_fn=limited, capture_output=True, text=True, check=False
    )
    assert "SaveError" in done.stderr
    assert list(path.parent.iterdir()) == [path]
    assert load(path).stats.counts.shape[1] == 50


def test_an_interruption_leaves_nothing_behind(path):
    def fill(descriptor):
        os.write(descriptor, b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole(path, fill)
    assert not list(path.parent.iterdir())


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="processes are watched through /proc")
def test_concurrent_writers_never_mix(path, writers):
    save(model(10), path)
    ids = [start(writers, path, 40, width) for width in (10, 30_000, 60_000)]
    seen = set()
    while any(os.path.exists(f"/proc/{each}") and b"Z" not in _state(each) for each in ids):
        counts = load(path).stats.counts
        assert (counts == counts.shape[1]).all()
        seen.add(counts.shape[1])
    assert len(seen) > 1
    assert list(path.parent.iterdir()) == [path]


def _state(process):
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0]
    except OSError:
        return b"Z"


def test_a_model_that_is_mapped_survives_its_file(path):
    save(model(200_000), path)
    loaded = load(path, verify=False)
    save(model(), path)
    path.unlink()
    assert (loaded.stats.counts == 200_000).all()


def test_places_that_cannot_be_written_are_named(path, tmp_path):
    with pytest.raises(SaveError, match="no such folder"):
        save(model(), tmp_path / "nowhere" / "model.deciban")
    with pytest.raises(SaveError, match="folder"):
        save(model(), tmp_path)
    with pytest.raises(SaveError, match="name is too long"):
        save(model(), tmp_path / ("x" * 300))
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.geteuid() == 0, reason="an administrator may write anywhere")
def test_a_folder_without_permission_is_named(path, tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(SaveError, match="may not write"):
        save(model(), path)


def test_links_and_permissions_stay(path, tmp_path):
    link = tmp_path / "link.deciban"
    link.symlink_to(path)
    save(model(), link)
    path.chmod(0o640)
    save(model(60), link)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert load(path).stats.counts.shape[1] == 60
