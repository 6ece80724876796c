"""The programs that stay: the local controller, the global manager, the worker agent."""

from __future__ import annotations

import logging
import signal
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from lc_events.cli.flags import Flags, with_settings
from lc_events.settings.meanings import GM, LC, WORKER

__all__ = ["family"]

family = typer.Typer()

_log = logging.getLogger("lc_events")


@family.command()
@with_settings(LC)
def run(
    flags: Flags,
    *,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Run even if another controller answers for this node: it gives way.")
    ] = False,
) -> None:
    """Run the local controller of this node, until SIGTERM or Ctrl-C."""
    from lc_events.logs import configure_logging
    from lc_events.settings.programs import LcSettings

    settings = LcSettings.load(**flags)
    configure_logging(settings.log, settings.log_format)
    _say_if_missing(settings.root, "LC_ROOT")

    from eventsourcing.persistence import PersistenceError

    from lc_events.application.journal import unusable
    from lc_events.controller.bootstrap import LocalController

    try:
        controller = LocalController(settings, take_over=take_over)
    except (PersistenceError, sqlite3.Error) as error:
        raise unusable(settings.store, "read", error) from error
    _stop_at_signals(controller.stop)
    controller.run()


@family.command()
@with_settings(GM)
def gm(flags: Flags) -> None:
    """Run the stand-alone global manager, until SIGTERM or Ctrl-C."""
    from lc_events.logs import configure_logging
    from lc_events.settings.programs import GmSettings

    settings = GmSettings.load(**flags)
    configure_logging(settings.log, settings.log_format)

    from lc_events.gm.bootstrap import global_manager

    manager = global_manager(settings)
    _stop_at_signals(manager.stop)
    manager.run()


@family.command()
@with_settings(WORKER)
def worker(flags: Flags) -> None:
    """Run the agent that trains, evaluates and serves on this node, until SIGTERM or Ctrl-C."""
    from lc_events.logs import configure_logging
    from lc_events.settings.programs import WorkerSettings

    settings = WorkerSettings.load(**flags)
    configure_logging(settings.log, settings.log_format)
    _say_if_missing(settings.root, "WORKER_ROOT")

    from lc_events.mqtt.topics import Topics
    from lc_events.workers.agent import WorkerAgent

    agent = WorkerAgent(settings.agent, settings.mqtt, topics=Topics(settings.topic_root))
    _stop_at_signals(agent.stop)
    agent.run()


@family.command()
def demo(
    *,
    rounds: Annotated[int, typer.Option("--rounds", metavar="N", help="Rounds to train.")] = 2,
    broker: Annotated[
        str | None, typer.Option("--broker", metavar="URL", help="Use this broker instead of an embedded one.")
    ] = None,
    s3: Annotated[
        bool, typer.Option("--s3", help="Start an S3 server too; dataset, samples and models are objects.")
    ] = False,
) -> None:
    """Watch a real model being trained, evaluated and deployed, round after round, on this machine."""
    from lc_events.demo.performance import Performance

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, _interrupt)
    Performance(rounds=rounds, broker=broker, s3=s3).run()


def _say_if_missing(root: Path, setting: str) -> None:
    """It may be mounted later, so it is no error; but a wrong one shows nowhere else before a job needs it."""
    if not root.is_dir():
        _log.warning("%s: there is no folder %s, so no local file is found yet; is it mounted?", setting, root)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _stop_at_signals(stop: Callable[[], None]) -> None:
    """Stop on another thread: a handler that takes a lock waits for ever if the signal came while that was held."""

    def handle(*_: object) -> None:
        threading.Thread(target=stop, name="stop").start()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)
