"""Start ``python run.py …``, and the processes that it starts, by forking a process that has
imported their modules: an import of Hydra, DVC, MLflow or PyTorch takes longer than most runs.

``Forked`` is a ``subprocess.Popen``. What it starts is a child of the caller: pid, signals, exit
code and processor time are real ones. Not so /proc's command line and environment, nor Python's
options: tests of those, of Ctrl-C among imports and of terminals start a real ``python``.
"""

import atexit
import builtins
import contextlib
import ctypes
import fcntl
import functools
import gc
import importlib
import inspect
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
import types
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parents[2]
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
BECOME_SUBREAPER = 36
"""Option of prctl(2): orphans among the process' descendants become its children."""
HIGH = 512
"""No descriptor of a run has such a number."""

DVC = "repo repo.index repo.artifacts repo.datasets repo.metrics repo.params repo.plots repo.stage"
RUNS = [
    *("hydra.core.plugins", "psutil", "filelock", "numpy", "rich.live", "rich.table"),
    *("joblib.externals.loky.backend.fork_exec", "joblib.externals.loky.process_executor"),
    *(f"dvc.{name}" for name in DVC.split()),
    *("dvc.lock", "dvc.scm", "dvc.cachemgr", "dvc.data_cloud", "dvc.utils.strictyaml"),
    *("dvc_data.index.checkout", "dvc_data.hashfile.db.local", "dvc_render", "scmrepo.git"),
    *("scmrepo.noscm", "ruamel.yaml", "platformdirs", "tomllib"),
]
STAGES = "fetch train prune quantize schedule generate build simulate prove measure package"
MODULES = {
    "made up": RUNS,
    "tracked": [*RUNS, "mlflow"],
    "own": [*RUNS, "torch", "pipeline.runner.command", *(f"stages.{n}" for n in STAGES.split())],
}
"""Modules that a parent imports: of runs in a made-up project, tracked ones, the checkout's."""


class Parent:
    """The process at the other end of a socket, which forks when it is asked to."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection

    def fork(self, request: Mapping[str, Any], descriptors: Sequence[int]) -> int:
        """The pid of a new child of this process, which does what ``request`` says."""
        prctl, answer = ctypes.CDLL(None).prctl, b""
        prctl(BECOME_SUBREAPER, 1, 0, 0, 0)
        with contextlib.suppress(OSError):
            socket.send_fds(self.connection, [json.dumps(request).encode()], descriptors)
            answer = self.connection.recv(64)
        prctl(BECOME_SUBREAPER, 0, 0, 0, 0)
        if not answer:
            raise RuntimeError("the process that forks runs (tests/runner/parent.py) has ended")
        return int(answer)


@functools.cache
def parent(kind: str) -> Parent:
    """One for all tests of this process."""
    mine, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    words = [sys.executable, "-P", __file__, str(other.fileno()), kind]
    env = {**os.environ, "PYTHONHASHSEED": "0", "REACH_TEST": ""}
    process = subprocess.Popen(words, cwd="/", env=env, pass_fds=[other.fileno()])
    other.close()
    atexit.register(lambda: (mine.close(), process.wait()))
    return Parent(mine)


class Forked(subprocess.Popen[Any]):
    """Popen of ``[python, program, …]`` by the parent of ``kind``. In a forked run it is Popen, and
    ``within`` the parent of the run's own processes."""

    within: Parent | None = None

    def __init__(self, words: Sequence[Any], kind: str = "own", **kwargs: Any) -> None:
        self.kind = kind
        super().__init__(words, **kwargs)

    def _execute_child(self, *args: Any) -> None:
        bound = inspect.signature(super()._execute_child).bind(*args).arguments
        given = {name.removeprefix("unused_"): value for name, value in bound.items()}
        words = [str(word) for word in given["args"]]
        silent = words[1:3] == ["-W", "ignore"]
        python, *words = words[:1] + words[3 if silent else 1 :]
        python_runs = python in ("python", sys.executable) and words[:1] == ["-m"]
        if self.within and not (python_runs and words[1].startswith(("stages.", "pipeline."))):
            return super()._execute_child(*args)
        request = asked(words, os.environ if given["env"] is None else given["env"])
        request |= {"cwd": str(Path(given["cwd"] or ".").absolute()), "silent": silent}
        request |= {"session": given["start_new_session"]}
        request |= {"umask": given["umask"]} if given["umask"] >= 0 else {}
        ends = [(given["p2cread"], 0), (given["c2pwrite"], 1), (given["errwrite"], 2)]
        descriptors = [number if end < 0 else end for end, number in ends]
        try:
            self.pid = (self.within or parent(self.kind)).fork(request, descriptors)
        except RuntimeError:
            if not self.within:
                raise
            return super()._execute_child(*args)  # a failed run has ended all its children
        self._child_created = True
        names = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        self._close_pipe_fds(*(given[name] for name in names))
        return None


def run(words: Sequence[Any], kind: str = "own", **kwargs: Any) -> subprocess.CompletedProcess[str]:
    """As ``subprocess.run``, with what is printed as text."""
    pipe = subprocess.PIPE
    with Forked(words, kind, stdout=pipe, stderr=pipe, text=True, **kwargs) as process:
        out, err = process.communicate()
    return subprocess.CompletedProcess(words, process.returncode, out, err)


def fork_exec(
    words: Sequence[str], kept: Sequence[int], env: Mapping[str, str] | None = None
) -> int:
    """In place of joblib's: start a process for jobs of a sweep."""
    assert Forked.within
    numbers = [0, 1, 2, *sorted(set(map(int, kept)))]
    request = asked(words[1:], {**os.environ, **(env or {})})
    return Forked.within.fork({**request, "numbers": numbers}, numbers)


def asked(words: Sequence[str], env: Mapping[str, str]) -> dict[str, Any]:
    """A request for a process that inherits this one's folder, streams, mask and signals."""
    os.umask(umask := os.umask(0))
    ignored = [int(number) for number in SIGNALS if signal.getsignal(number) == signal.SIG_IGN]
    blocked = [int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, [])]
    request = {"umask": umask, "ignored": ignored, "blocked": blocked, "numbers": [0, 1, 2]}
    return {**request, "words": list(words), "env": dict(env), "cwd": str(Path.cwd())}


def serve(connection: socket.socket) -> NoReturn:
    """Fork at each request; the forked process runs its program, as a fresh Python does."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(connection, 1 << 20, 64)
        if not message:
            os._exit(0)
        reader, writer = os.pipe()
        if not (middle := os.fork()):
            if child := os.fork():
                os.write(writer, str(child).encode())
                os._exit(0)  # the orphan becomes the asker's
            connection.detach()
            enter(json.loads(message), descriptors)
        for descriptor in (writer, *descriptors):
            os.close(descriptor)
        os.waitpid(middle, 0)
        connection.send(os.read(reader, 64))
        os.close(reader)


def enter(request: Mapping[str, Any], descriptors: Sequence[int]) -> NoReturn:
    """Give this process what the one that it stands for inherits, and run the program."""
    if request.get("session"):
        os.setsid()
    high = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, HIGH) for descriptor in descriptors]
    os.closerange(0, HIGH)
    for descriptor, number in zip(high, request["numbers"], strict=True):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    module, *arguments = request["words"]
    if module != "-m" or arguments[0].startswith("joblib"):
        nest()
    os.umask(request["umask"])
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    if "coverage" in sys.modules and (recorder := sys.modules["coverage"].Coverage.current()):
        recorder.switch_context(os.environ.get("REACH_TEST", ""))  # tests/recorder.py
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # Ctrl-C may come before the mask is set
    for number in SIGNALS:
        default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN if number in request["ignored"] else default)
    signal.pthread_sigmask(signal.SIG_SETMASK, request["blocked"])
    if request.get("silent"):
        warnings.simplefilter("ignore")
    folder = Path.cwd() if module == "-m" else Path(module).resolve().parent
    first = [] if os.environ.get("PYTHONSAFEPATH") else [str(folder)]
    sys.path[:0] = first + [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    importlib.invalidate_caches()
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        if module == "-m":
            Path("/proc/self/comm").write_text(arguments[0])  # all that tells it from others
            sys.argv = arguments
            runpy._run_module_as_main(arguments[0])  # type: ignore[attr-defined]
        else:
            sys.argv, main.__file__ = [module, *arguments], str(Path.cwd() / module)
            vars(main)["__builtins__"] = builtins
            exec(compile(Path(module).read_bytes(), main.__file__, "exec"), vars(main))
        sys.exit()
    except SystemExit as ended:
        leave(ended.code)


def leave(code: str | int | None) -> NoReturn:
    """End as Python does, but without freeing all objects: they would be copied first."""
    if isinstance(code, str):
        print(code, file=sys.stderr)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        os._exit(1 if isinstance(code, str) else code or 0)
    sys.exit(code)


def nest() -> None:
    """Fork a parent for what this process is going to start, and have it asked."""
    mine, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if not os.fork():
        mine.close()
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nothing, number)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        serve(other)
    other.close()
    Forked.within = Parent(mine)
    subprocess.Popen = Forked  # type: ignore[misc]
    sys.modules["joblib.externals.loky.backend.fork_exec"].fork_exec = fork_exec


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.path.insert(0, str(ROOT))
    for name in MODULES[sys.argv[2]]:
        importlib.import_module(name)
        if name.startswith("stages."):  # the program to be
            del sys.modules[name]
    sys.path.remove(str(ROOT))
    sys.modules["hydra.core.plugins"].Plugins.instance()
    gc.collect()
    gc.freeze()
    serve(socket.socket(fileno=int(sys.argv[1])))
