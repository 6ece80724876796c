"""Why a round has not fired: too few samples, the window, the dataset."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from lc_events.application.audit import wording
from lc_events.application.audit.recall import Recall, Standing
from lc_events.application.audit.silence import Silence
from lc_events.application.audit.windows import last_closing, next_closing, next_opening
from lc_events.domain import events as e
from lc_events.domain.dataset import is_of_data
from lc_events.domain.pauses import LONGEST_PAUSE
from lc_events.domain.views import verdict_detail
from lc_events.domain.window import is_open, show_window
from lc_events.messages.json import Json
from lc_events.messages.resources import is_s3

__all__ = ["not_trained"]


def not_trained(recall: Recall) -> Standing:
    """The sentence for a job that waits for its training trigger."""
    state, since = recall.state, recall.condition_since()
    verdict = state.verdict
    round_ = state.round + 1
    reason = "unknown" if verdict is None or verdict.stage != "Train" else verdict.reason
    facts = _window_facts(recall, since)
    silence = recall.silence()
    not_fired = f"Round {round_} has not fired:"
    match reason:
        case "samples" | "window":
            sentence, waits_for = _by_window(recall, facts, round_, reason)
        case "no_samples":
            sentence, waits_for = f"{not_fired} {_nothing_pending(recall)}", "samples"
        case "dataset" if verdict is not None:
            again = _looked_for(recall) if silence is not None and silence.error == verdict.note else ""
            sentence, waits_for = f"{not_fired} {verdict_detail(verdict)}{again}", "dataset"
        case "metric" if verdict is not None:
            sentence, waits_for = f"Round {round_} never fires: {verdict_detail(verdict)}", "nobody"
        case _:
            sentence, waits_for = f"{not_fired} its trigger was not looked at yet", "tick"
    if silence is not None:
        facts |= {"dataset_error": silence.error, "dataset_since": silence.since}
        if reason in ("samples", "window", "no_samples"):
            sentence += f"; no more come, for {_told(recall, silence)}{_looked_for(recall)}"
            waits_for = "dataset" if waits_for == "samples" else waits_for
    return Standing(sentence, waits_for, since, facts)


def _nothing_pending(recall: Recall) -> str:
    state = recall.state
    if state.train_prob == 0:
        return "no train sample is pending, for trainProb 0 has all samples evaluate"
    arrived = recall.newest(e.SamplesArrived)
    if arrived is None:
        return f"no train sample is pending, and the dataset {state.dataset_name} gave none yet"
    ago = recall.length_since(arrived.time)
    return f"no train sample is pending, the newest samples came {ago} ago"


def _told(recall: Recall, silence: Silence) -> str:
    return silence.words(lambda time: recall.clock(time).removeprefix("at "))


def _looked_for(recall: Recall) -> str:
    """How soon it is seen that a dataset can be read again; nothing of one that was deleted."""
    dataset = recall.dataset()
    problem = None if dataset is None else dataset.problem
    if dataset is None or problem is None:
        return ""
    if is_s3(dataset.url) and not is_of_data(problem.code):
        return f"; it is tried again within {LONGEST_PAUSE:.0f} s"
    return "; it is looked at again at least every LC_DATASET_SECONDS, by default 60 s"


def _window_facts(recall: Recall, since: str | None) -> dict[str, Json]:
    """When the window opens and closes, and with how many samples it closed last, if the round waited then."""
    state, moment = recall.state, recall.moment
    window, zone = state.trigger.window, state.zone
    if window is None:
        return {}
    if is_open(window, zone, moment):
        return {"window_open": True, "window_closes": _shown(next_closing(window, zone, moment))}
    facts: dict[str, Json] = {"window_open": False, "window_opens": _shown(next_opening(window, zone, moment))}
    closed = last_closing(window, zone, moment)
    if closed is not None and since is not None and datetime.fromisoformat(since) <= closed:
        then = recall.state_at(closed + timedelta(seconds=59))
        if then is not None and then.generation == state.generation:
            facts |= {"window_closed": _shown(closed), "value_then": then.train_pending_count}
    return facts


def _by_window(recall: Recall, facts: dict[str, Json], round_: int, reason: str) -> tuple[str, str]:
    state = recall.state
    trigger, count = state.trigger, state.train_pending_count
    pending = wording.pending(trigger, count)
    if trigger.window is None:
        return f"Round {round_} has not fired: {pending}", "samples"
    window = show_window(trigger.window)
    opens, closed, then = facts.get("window_opens"), facts.get("window_closed"), facts.get("value_then")
    if facts["window_open"]:
        closes = facts.get("window_closes")
        until = f", which closes {recall.clock(closes)}," if isinstance(closes, str) else ""
        return f"Round {round_} has not fired yet: its window {window}{until} is open, and {pending}", "samples"
    again = f"it opens again {_next(recall, opens)}" if isinstance(opens, str) else "it never opens"
    if isinstance(closed, str) and isinstance(then, int):
        moment = datetime.fromisoformat(closed)
        day, local = wording.day(moment, recall.moment, state.zone), wording.local(moment, state.zone)
        text = f"Round {round_} did not fire {day}: the window closed at {local:%H:%M} with"
        now = f"; now {pending}" if then != count else ""
        return f"{text} {wording.progress(trigger, then)}{now}; {again}", reason
    return f"Round {round_} has not fired: {pending}, and its window {window} ({state.zone}) is closed; {again}", reason


def _next(recall: Recall, opens: str) -> str:
    local = wording.local(datetime.fromisoformat(opens), recall.state.zone)
    here = wording.local(recall.moment, recall.state.zone)
    tomorrow = local.date() == here.date() + timedelta(days=1)
    return f"at {local:%H:%M}" + ("" if local.date() == here.date() else " tomorrow" if tomorrow else f" on {local:%F}")


def _shown(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
