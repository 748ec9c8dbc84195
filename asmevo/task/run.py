"""Runs one composed configuration and leaves its ``result.json``."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import cast

from omegaconf import DictConfig

from asmevo.failure import explain, resolve
from asmevo.report.result import Result, Status
from asmevo.task.session import Session, make
from asmevo.task.task import Task

log = logging.getLogger(__name__)


def run_task(config: DictConfig, folder: Path) -> Result:
    """Run the task of ``config`` in the run folder ``folder``.

    An error that the user can mend still leaves a ``result.json`` that says so, and is raised.
    """
    started = time.monotonic()
    name = _task_name(str(config.task.get("_target_", "")))
    try:
        resolve(config)
        task = cast(Task, make(config, "task", Task))
        result = task.run(Session(config, folder))
    except (Exception, KeyboardInterrupt) as error:
        sentence = explain(error)
        interrupted = isinstance(error, KeyboardInterrupt)
        if sentence is not None or interrupted:
            Result(
                task=name,
                status=Status.INTERRUPTED if interrupted else Status.ERROR,
                error=sentence,
                folder=str(folder),
                wall_seconds=time.monotonic() - started,
            ).write(folder)
        raise
    result.write(folder)
    log.info("result: %s", result)
    return result


def _task_name(target: str) -> str:
    """The name of a task's class, in words where its module has them."""
    module, _, name = target.rpartition(".")
    words = module.rpartition(".")[2]
    return words if words.replace("_", "") == name.lower() else name.lower()
