"""What happens in the demo, told line by line from the events that the LC publishes."""

from __future__ import annotations

from lc_events.messages.json import JsonObject

__all__ = ["tell"]


def tell(event: JsonObject) -> str | None:
    """One line for a CloudEvent that moves the story on, None for the others."""
    name = str(event["type"]).split(".")[-2]
    data = event["data"]
    if not isinstance(data, dict):
        return None
    match name:
        case "SamplesArrived":
            return f"{_sum(data)} samples arrived: {data.get('train', 0)} to train, {data.get('eval', 0)} to evaluate"
        case "TrainingTriggered":
            facts = data["facts"]
            rule = f"{facts['metric']} {facts['value']} {facts['operator']} {facts['threshold']:g}"
            return f"training of round {data['round']} triggered ({rule})"
        case "EvaluationTriggered":
            return f"evaluation of round {data['round']} on {data['samples']} samples triggered"
        case "ModelDeployed":
            return f"model of round {data['round']} deployed, {data['size']} bytes, sha256 {str(data['sha256'])[:12]}…"
        case "TriggerFailed":
            return f"{data['stage']} of round {data['round']} failed: {data['error']}"
        case "WorkerResultReceived" if data["status"] in ("completed", "failed"):
            return f"worker {data['kind']} {data['status']}{_metrics(data)}"
    return None


def _sum(data: JsonObject) -> int:
    return sum(value for key in ("train", "eval") if isinstance(value := data.get(key, 0), int))


def _metrics(data: JsonObject) -> str:
    results = data.get("results")
    first = results[0] if isinstance(results, list) and results else None
    metrics = first.get("metrics") if isinstance(first, dict) else None
    if not isinstance(metrics, dict):
        return ""
    return ": " + ", ".join(f"{name} {_shown(value)}" for name, value in metrics.items())


def _shown(value: object) -> str:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return f"{value:.3f}" if isinstance(value, float) else str(value)
