"""The command line: compose the configuration, run its task, report."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from asmevo.config import register
from asmevo.failure import explain
from asmevo.interruption import interruptible

# Not what is quoted already, a list or null.
_FILE_OVERRIDE = re.compile(
    r"""(\+{0,2}(?:source|original|output|readme|runs?))=((?!['"\[]|null$).+)""")
_SPECIAL = re.compile(r"[^\w/\-.+%*@?:]", re.ASCII)


def config_folder() -> str:
    """``conf/`` of a checkout, or the copy inside an installed package."""
    package = Path(__file__).resolve().parent
    checkout = package.parent / "conf"
    if (package.parent / "pyproject.toml").is_file() and checkout.is_dir():
        return str(checkout)
    return str(package / "conf")


def quoted(arguments: Sequence[str]) -> list[str]:
    """The arguments with file names quoted that Hydra's grammar cannot take as they are.

    ``lib.so!kernel`` and ``a=b.co`` are ordinary names to a person and a shell.
    """
    sweep = bool({"-m", "--multirun"} & set(arguments))
    result = []
    for argument in arguments:
        match = _FILE_OVERRIDE.fullmatch(argument)
        if match and _SPECIAL.search(match[2]) and not (sweep and "," in match[2]):
            text = match[2].replace("\\", "\\\\").replace("'", "\\'")
            argument = f"{match[1]}='{text}'"
        result.append(argument)
    return result


def main() -> int:
    """Run AsmEvo; gives the exit status."""
    sys.argv[1:] = quoted(sys.argv[1:])
    statuses: list[int] = []
    wants_traceback = os.environ.get("HYDRA_FULL_ERROR", "0") not in ("", "0")
    # Hydra would print errors its own way and exit with 1; with this set it lets them through.
    os.environ["HYDRA_FULL_ERROR"] = "1"

    def report(error: Exception, *, composing: bool) -> None:
        sentence = None if wants_traceback else explain(error, composing=composing)
        if sentence is None:
            raise error
        print(f"asmevo: {sentence}", file=sys.stderr)

    @hydra.main(version_base="1.3", config_path=config_folder(), config_name="config")
    def job(config: DictConfig) -> None:
        # Imported late, so that --help needs none of it.
        from asmevo.report.result import Status
        from asmevo.report.terminal import print_result
        from asmevo.task.run import run_task

        try:
            result = run_task(config, Path(HydraConfig.get().runtime.output_dir))
        except Exception as error:
            statuses.append(2)
            report(error, composing=False)
            return
        print_result(result)
        statuses.append(result.exit_status)
        if result.status is Status.INTERRUPTED:
            raise KeyboardInterrupt  # ends a sweep as well

    def terminate(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    # `kill` and batch systems send SIGTERM; it ends a run as cleanly as Ctrl-C does.
    signal.signal(signal.SIGTERM, terminate)
    register()
    try:
        with interruptible():
            job()
    except KeyboardInterrupt:
        print("asmevo: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader (`| head`) has had enough. Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as error:
        # Outside the job only the configuration can be wrong, unless the job itself let a defect
        # of AsmEvo through.
        report(error, composing=not statuses)
        return 2
    return max(statuses, default=0)


if __name__ == "__main__":
    sys.exit(main())
