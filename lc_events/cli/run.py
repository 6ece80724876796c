"""The programs that stay: the local controller, the global manager, the worker agent."""

from __future__ import annotations

import signal
from collections.abc import Callable

import typer

from lc_events.cli.flags import Flags, with_settings
from lc_events.settings.meanings import LC, WORKER

family = typer.Typer()


@family.command()
@with_settings(LC)
def run(flags: Flags) -> None:
    """Run the local controller of this node, until SIGTERM or Ctrl-C."""
    from lc_events.logs import configure_logging
    from lc_events.settings.programs import LcSettings

    settings = LcSettings.load(**flags)
    configure_logging(settings.log, settings.log_format)

    from lc_events.controller.bootstrap import LocalController

    controller = LocalController(settings)
    _stop_at_signals(controller.stop)
    controller.run()


@family.command()
@with_settings(WORKER)
def worker(flags: Flags) -> None:
    """Run the agent that trains, evaluates and serves on this node, until SIGTERM or Ctrl-C."""
    from lc_events.logs import configure_logging
    from lc_events.settings.programs import WorkerSettings

    settings = WorkerSettings.load(**flags)
    configure_logging(settings.log, settings.log_format)

    from lc_events.mqtt.topics import Topics
    from lc_events.workers.agent import WorkerAgent

    agent = WorkerAgent(settings.agent, settings.mqtt, topics=Topics(settings.topic_root))
    _stop_at_signals(agent.stop)
    agent.run()


def _stop_at_signals(stop: Callable[[], None]) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop())
