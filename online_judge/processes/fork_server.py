"""The process that imports torch and triton, never touches CUDA, and forks all others."""

import contextlib
import gc
import importlib
import json
import logging
import os
import pkgutil
import select
import shutil
import signal
import socket
import sys
import traceback
import warnings
from pathlib import Path
from typing import NoReturn

from adaexplore.core.environment import SoftwareFacts
from online_judge.common.cores import run_on
from online_judge.processes import supervisor
from online_judge.processes.warm_cache import Building, WarmCache, has_driver, preload
from online_judge.protocol.channel import Channel, ChannelClosed
from online_judge.sandbox import cgroups, linux, process_spec
from online_judge.sandbox.process_spec import ProcessSpec

_PRELOADED = ("common", "protocol", "cpu", "candidate", "evaluator")


class ForkServer:
    """Obeys fork orders from one channel until it closes; leaves no process behind.

    Orders are JSON objects with an ``op``: ``candidate`` (start a process with its supervisor; descriptors:
    its socket and the lifeline) and ``gpus`` (report the GPUs; descriptor: for the report). The answer is the
    new process's id.
    """

    def __init__(self, control: Channel, home: str, helpers: WarmCache) -> None:
        """Start nothing yet; ``home`` is removed at the end, ``helpers`` go into children's Triton caches."""
        self._control = control
        self._home = home
        self._helpers = helpers
        self._children: set[int] = set()

    def serve(self, software: SoftwareFacts) -> None:
        """Send ``software``, then work until the gateway is gone."""
        wake_read = supervisor.wake_on_child_end()
        try:
            self._control.send_json({"software": software.model_dump()})
            while True:
                ready, _, _ = select.select([self._control.fileno(), wake_read], [], [])
                if wake_read in ready:
                    self._reap(wake_read)
                if self._control.fileno() in ready:
                    self._obey()
        except ChannelClosed:
            pass
        linux.kill_descendants()
        shutil.rmtree(self._home, ignore_errors=True)

    def _obey(self) -> None:
        order, fds = self._control.receive_json()
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            try:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                linux.die_with_parent(signal.SIGKILL, parent)
                linux.close_descriptors(fds)
                if order["op"] == "gpus":
                    _report_gpus(order["environment"], fds[0])
                _supervise(ProcessSpec(**order["spec"]), fds[0], fds[1], self._helpers)
            except BaseException:  # noqa: BLE001 - a child must not continue as a second fork server
                traceback.print_exc()
            finally:
                os._exit(1)
        self._children.add(pid)
        for fd in fds:
            os.close(fd)
        self._control.send_json({"pid": pid})

    def _reap(self, wake_read: int) -> None:
        """Reap dead children; kill orphans of supervisors that were killed."""
        for pid, status in supervisor.reap(wake_read):
            self._children.discard(pid)
            if status != 0:
                cgroups.sweep()
        for pid in linux.process_tree().get(os.getpid(), ()):
            if pid not in self._children:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def _supervise(spec: ProcessSpec, process_end: int, lifeline: int, helpers: WarmCache) -> NoReturn:
    def main_of_role(sock: socket.socket) -> NoReturn:
        from online_judge.candidate.process import main as candidate_main
        from online_judge.evaluator.process import main as evaluator_main
        from online_judge.processes.compile_process import main as compiler_main

        mains = {"candidate": candidate_main, "compiler": compiler_main, "evaluator": evaluator_main}
        if spec.role == "evaluator":
            linux.set_process_name("judge-evaluator")
        process_spec.enter(spec)
        helpers.seed(Path(os.environ["TRITON_CACHE_DIR"]))
        mains[spec.role](sock, spec)

    run_on(spec.cores)  # supervisors have a high priority: keep them off the cores for timing
    supervisor.supervise(main_of_role, process_end, lifeline, process_spec.wanted(spec))


def _report_gpus(environment: dict[str, str], answer: int) -> NoReturn:
    """Write the facts of the GPUs to the descriptor ``answer``; this may touch CUDA."""
    import torch

    from online_judge.processes.environment import device_facts

    os.environ.update(environment)
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    gpus = [device_facts(torch.cuda.get_device_properties(index)).model_dump() for index in range(count)]
    os.write(answer, json.dumps({"gpus": gpus}).encode())
    os._exit(0)


def import_everything() -> SoftwareFacts:
    """Import what the children need before they are forked; return the facts for clients."""
    from online_judge.checks.registry import all_checks
    from online_judge.evaluator import size_check
    from online_judge.evaluator.timing.baselines.baseline import all_baselines
    from online_judge.processes import compile_process, environment

    for package in _PRELOADED:  # sandboxed processes do not see this repository's files
        path = [str(Path(__file__).resolve().parents[1] / package)]
        for module in pkgutil.walk_packages(path, f"online_judge.{package}."):
            importlib.import_module(module.name)
    all_checks(), all_baselines()  # and cannot list them
    compile_process.warm_up()
    if not has_driver():  # only needed without a GPU: with one, reference sizes are not checked
        size_check.warm_up()
    return environment.stated()


def main(argv: list[str]) -> None:
    """Serve a control socket; the arguments are its descriptor and the home folder."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s fork server %(message)s")
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    control = Channel.from_fd(int(argv[0]))
    linux.set_process_name("judge-fork")
    linux.become_subreaper()
    building = Building(Path(argv[1]) / "helpers") if has_driver() else None
    gc.disable()  # imports make no garbage; collecting would take a quarter of their time
    software = import_everything()
    if building is not None:
        preload()
    helpers = WarmCache() if building is None else building.result()
    linux.forbid_inspection()
    cgroups.sweep()
    gc.freeze()  # children share memory that nobody writes to
    gc.enable()
    ForkServer(control, argv[1], helpers).serve(software)


if __name__ == "__main__":
    main(sys.argv[1:])
