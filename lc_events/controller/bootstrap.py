"""The one place where the local controller is wired together, and the order in which it starts and stops."""

from __future__ import annotations

import gc
import logging
import secrets
import threading
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path

import lc_events
from lc_events.application.journal import STORE_ERRORS, Journal, open_journal
from lc_events.application.known import Recent
from lc_events.application.snapshots import Snapshots
from lc_events.controller.asking import Asking
from lc_events.controller.committer import Committer
from lc_events.controller.effects import Effects
from lc_events.controller.following import Following
from lc_events.controller.housekeeping import Housekeeping
from lc_events.controller.intake import Desk
from lc_events.controller.latest import LatestValues
from lc_events.controller.locations import Locations
from lc_events.controller.logbook import log_events
from lc_events.controller.outbox import Outbox
from lc_events.controller.outbox_mark import OutboxMark
from lc_events.controller.presence import Presence, complaints
from lc_events.controller.publications import Publications
from lc_events.controller.quarantine import Quarantine
from lc_events.controller.reading import read_message
from lc_events.controller.refusals import Refusals
from lc_events.controller.repeats import Repeats
from lc_events.controller.scheduler import Scheduler
from lc_events.controller.timers import Timers
from lc_events.controller.world import State, World
from lc_events.datasets.watch import FolderWatcher
from lc_events.domain.events import LC_EVENTS, Registry
from lc_events.domain.stamp import stamp
from lc_events.errors import BrokerError, ConflictError, RefusedError, StoreError
from lc_events.faults import reach
from lc_events.logs import set_mask
from lc_events.messages.json import dumps
from lc_events.mqtt.client import MqttClient
from lc_events.mqtt.internal import InternalBroker
from lc_events.mqtt.oneshot import retained
from lc_events.mqtt.packets import Connected, Publication, Received
from lc_events.mqtt.topics import Topics
from lc_events.runtime.clock import Clock, clock_of_environment
from lc_events.runtime.lock import FolderLock
from lc_events.runtime.rate import Rate
from lc_events.runtime.vault import SECRETS_FILE, Vault
from lc_events.settings.programs import LcSettings

__all__ = ["LocalController"]

_log = logging.getLogger("lc_events")

_LAST_WORDS = 5.0
_MOST_COMPLAINTS = 20


class LocalController:
    """One node's local controller.

    ConflictError if its state folder, or that of its store, is in use or is another node's, StoreError if its store is
    damaged.
    """

    def __init__(self, settings: LcSettings, clock: Clock | None = None, *, take_over: bool = False) -> None:
        self._settings = settings
        self._take_over = take_over
        self._taken: BrokerError | None = None
        self._complaints: list[tuple[str, str]] = []
        self._presence: Presence | None = None
        self._clock = clock = clock or clock_of_environment()
        self._stopped = threading.Event()
        self._session = ""
        with ExitStack() as locks:
            folders = {settings.state_dir.resolve(): "LC_STATE_DIR"}
            folders.setdefault(settings.store.parent.resolve(), "LC_STORE")
            for folder, setting in folders.items():
                locks.enter_context(FolderLock(folder, setting))
            self._locks = locks.pop_all()
        self._journal = open_journal(settings.store, Registry(LC_EVENTS), write=True)
        _claim(self._journal, settings.node)
        self._world = _loaded(self._journal)
        vault = Vault(settings.state_dir / SECRETS_FILE)
        vault.keep_only([state.stream for state in self._all_states() if state.is_live] + list(self._world.broken))
        set_mask(vault.masked)
        self._broker = InternalBroker(settings.state_dir) if settings.mqtt_mode == "internal" else None
        self._topics = topics = Topics(settings.topic_root)
        self._committer = Committer(self._journal, self._world, clock, Timers())
        self._scheduler = Scheduler(
            self._committer,
            self._world,
            clock,
            zone=settings.timezone,
            period=settings.tick_seconds,
            decisive_only=settings.ticks == "decisive",
            model_places=settings.model_places,
        )
        locations = Locations.of_settings(
            settings, self._world, vault.get, closed=settings.closed, model_places=settings.model_places
        )
        self._watcher = FolderWatcher(self._noticed)
        self._following = Following(
            self._committer,
            self._world,
            clock,
            journal=self._journal,
            folder=settings.state_dir / "spool",
            locations=locations,
            period=settings.dataset_seconds,
            zone=settings.timezone,
            watch=self._watcher.watch,
            unwatch=self._watcher.unwatch,
        )
        self._effects = Effects(
            self._committer,
            self._world,
            clock,
            locations=locations,
            spooled=self._following.spooled,
        )
        self._outbox = Outbox(
            journal=self._journal,
            publications=Publications(settings.node, topics),
            latest=LatestValues(world=self._world, journal=self._journal, topics=topics, node=settings.node),
            mark=OutboxMark(topics.outbox(settings.node), clock, look=self._look if self._broker is None else None),
            clock=clock,
            publish=self._publish,
            note_position=self._committer.note_position,
        )
        self._repeats = Repeats(self._committer, self._world, clock, self._outbox.repeat)
        self._desk = Desk(
            node=settings.node,
            zone=settings.timezone,
            max_bytes=settings.max_message_bytes,
            topics=topics,
            refusals=Refusals(
                node=settings.node,
                topics=topics,
                quarantine=Quarantine(settings.state_dir / "quarantine"),
                publish=self._outbox.publish,
                monotonic=clock.monotonic,
                later=self._committer.later,
            ),
            vault=vault,
            real_place=locations.real_place,
            settle=locations.settle,
            recent=Recent(self._journal.rows.newest_known),
            replies=self._outbox,
            event_hashes=self._journal.rows.hashes,
            acknowledge=self._acknowledge,
            tick_all=self._scheduler.tick_all,
            may_tick=Rate(per_second=10, burst=10, monotonic=clock.monotonic).allows,
            model_places=settings.model_places,
        )
        self._asks = self._topics.ask(settings.node, "state").removesuffix("state")
        self._asking = Asking(
            node=settings.node,
            topics=topics,
            store=settings.store,
            clock=clock,
            publish=self._outbox.publish,
            refuse=self._refuse,
        )
        self._client: MqttClient

    def run(self) -> None:
        """Run until `stop` is called from a signal handler or another thread; then finish what is begun.

        BrokerError once another controller answers for this node.
        """
        self._start()
        _collect_garbage_rarely()
        try:
            self._stopped.wait()
        finally:
            self._stop()
        if self._taken is not None:
            raise self._taken

    def stop(self) -> None:
        """Ask `run` to end."""
        self._stopped.set()

    def _start(self) -> None:
        if self._broker is not None:
            self._broker.start()
        self._client = self._made_client()
        for listener in (self._scheduler, self._effects, self._following, self._repeats):
            self._committer.listen(listener.consider)
        self._committer.listen(self._outbox.wake)
        self._committer.listen(Snapshots(self._journal).consider)
        self._committer.read_along(log_events)
        self._watcher.start()
        self._scheduler.start()
        self._effects.start()
        self._following.start()
        self._repeats.consider(self._all_states())
        Housekeeping(self._committer, self._journal, self._clock).start()
        self._committer.start()
        self._outbox.start()
        self._asking.start()
        self._client.start()
        _log.info(
            "local controller of node %s: %d streams, store %s, broker %s",
            self._settings.node,
            len(self._world.streams()),
            self._settings.store,
            self._client.settings.display_url,
        )

    def _stop(self) -> None:
        self._watcher.stop()
        self._asking.stop()
        self._following.stop()
        self._effects.stop()
        self._committer.stop()
        self._outbox.stop(_LAST_WORDS)
        self._client.stop(self._status("offline"))
        if self._broker is not None:
            self._broker.stop()
        self._journal.close()
        self._locks.close()
        _log.info("stopped")

    def _made_client(self) -> MqttClient:
        """The client, once an internal broker has its port and password; nobody else can be on that one."""
        settings = self._settings
        if self._broker is None:
            self._presence = Presence(
                settings.mqtt,
                topics=self._topics,
                node=settings.node,
                take_over=self._take_over,
                is_taken=self._give_way,
                first_seen=self._compare_heads,
            )
        return MqttClient(
            settings.mqtt if self._broker is None else self._broker.settings(settings.client_id),
            may_connect=None if self._presence is None else self._presence.may_connect,
            subscriptions=self._topics.lc_subscriptions(settings.node),
            will=self._will,
            on_message=self._received,
            on_connected=self._connected,
            on_published=self._outbox.published,
        )

    def _give_way(self, error: BrokerError) -> None:
        self._taken = error
        self.stop()

    def _look(self, topic: str) -> bytes | None:
        """What the broker retains on a topic of ours; a message of our own tells that it has said all."""
        marker = self._topics.answer(self._settings.node, f"outbox-{secrets.token_hex(8)}")
        return retained(self._settings.mqtt, topic, marker=marker).get(topic)

    def _compare_heads(self, found: Mapping[str, bytes]) -> None:
        """A store that was restored from a copy, or is new, lacks what others have seen; we say so and go on."""
        self._complaints = complaints(found, topics=self._topics, journal=self._journal)
        for _, words in self._complaints[:_MOST_COMPLAINTS]:
            _log.error("%s; it goes on from what it has (`lc-events verify --head FILE` says what is lost)", words)
        if len(self._complaints) > _MOST_COMPLAINTS:
            _log.error("and %d more such heads are on the broker", len(self._complaints) - _MOST_COMPLAINTS)

    def _all_states(self) -> Iterable[State]:
        return [*self._world.jobs(), *self._world.datasets()]

    def _received(self, received: Received) -> None:
        verb = self._verb(received)
        if verb is not None:
            self._asking.offer(received, verb)
            self._client.ack(received)
            return
        self._committer.wait_for_room()
        reach("message-received")
        self._committer.submit(read_message(self._desk, received, self._clock.now()))

    def _refuse(self, received: Received, refusal: RefusedError) -> None:
        self._desk.refusals.refuse(
            time=stamp(self._clock.now()),
            topic=received.topic,
            payload=received.payload,
            code=refusal.code,
            error=str(refusal),
        )

    def _verb(self, received: Received) -> str | None:
        """The verb of a request; None for any other message, and for a topic that is refused later."""
        if not received.topic.startswith(self._asks):
            return None
        try:
            return self._topics.parse(received.topic).verb
        except RefusedError:
            return None

    def _noticed(self, path: Path) -> None:
        self._following.noticed(path)

    def _publish(self, publication: Publication, connection: int) -> int:
        return self._client.publish(publication, connection=connection)

    def _acknowledge(self, received: Received) -> None:
        self._client.ack(received)
        reach("message-acknowledged")

    def _connected(self, connected: Connected) -> None:
        if self._presence is not None:
            self._presence.is_ours(self._session)
        self._outbox.connected(self._status("online"), connected.connection)
        self._repeats.connected()
        said, self._complaints = self._complaints, []
        for topic, words in said:
            now = stamp(self._clock.now())
            self._desk.refusals.report(code="history", error=words, topic=topic, time=now)

    def _will(self) -> Publication:
        """The will of the next connection; its session id is that of the birth that follows."""
        self._session = secrets.token_hex(8)
        return self._status("offline")

    def _status(self, state: str) -> Publication:
        status = {
            "state": state,
            "session": self._session,
            "version": lc_events.__version__,
            "time": stamp(self._clock.now()),
        }
        return Publication(self._topics.status(self._settings.node), dumps(status), retain=True)


def _claim(journal: Journal, node: str) -> None:
    """The store becomes this node's; ConflictError if it is the history of another: all ids in it name that one."""
    whose = journal.rows.about("node")
    if whose not in (None, node) and journal.rows.streams():
        raise ConflictError(
            f"{journal.path} is the history of node {whose}, not of {node}: "
            f"set LC_NODE={whose}, or another LC_STATE_DIR"
        )
    journal.rows.set_about("node", node)


def _collect_garbage_rarely() -> None:
    """What stays for good is not looked at again, the rest in larger portions.

    Every message brings hundreds of objects that live for milliseconds, few of them in cycles; with Python's own
    thresholds looking for those takes longer than all the rest.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def _loaded(journal: Journal) -> World:
    """The world as the store tells it; StoreError in words if the store as a whole cannot be read."""
    advice = "restore a copy, or move it away to start anew"
    if (complaint := journal.rows.quick_check()) is not None:
        raise StoreError(f"{journal.path} is damaged: {complaint}; {advice}")
    gc.disable()  # all that is read stays, so there is nothing to find
    try:
        world = World.load(journal)
    except STORE_ERRORS as error:
        raise StoreError(f"{journal.path} cannot be read: {error}; {advice}") from error
    finally:
        gc.enable()
    for stream, reason in world.broken.items():
        _log.error("%s is left out, and nothing is taken in for it: %s", stream, reason)
    return world
