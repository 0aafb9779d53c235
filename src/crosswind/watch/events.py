"""Alarms as OpenTelemetry events: log records in OTLP-JSON, one export request per line, for a collector to read."""

from __future__ import annotations

import json
import time
from typing import Any

from crosswind.base.version import __version__
from crosswind.watch.alarms import Alarm

EVENT = "crosswind.watch.alarm"
WARN, INFO = 13, 9  # severity numbers of OpenTelemetry


def event_line(alarm: Alarm, source: str, *, now: float | None = None) -> str:
    """An alarm as one line of OTLP-JSON."""
    shift = alarm.shift
    attributes: dict[str, Any] = {
        "event.name": EVENT,
        "crosswind.watch.source": source,
        "crosswind.watch.channel": alarm.channel,
        "crosswind.watch.at": alarm.at,
        "crosswind.watch.since": alarm.since,
        "crosswind.watch.impact": alarm.evidence.get("impact", ""),
    }
    if shift is not None:
        attributes |= {
            "crosswind.shift.kind": shift.kind,
            "crosswind.shift.axis": shift.axis,
            "crosswind.shift.severity": shift.severity,
            "crosswind.shift.confidence": shift.confidence,
            "crosswind.shift.tools": list(shift.tools),
            "crosswind.shift.keys": list(shift.keys),
        }
    if alarm.predicted_loss is not None:
        attributes["crosswind.shift.predicted_loss"] = alarm.predicted_loss
    stamp = str(int((time.time() if now is None else now) * 1e9))
    record = {
        "timeUnixNano": stamp,
        "observedTimeUnixNano": stamp,
        "severityNumber": WARN if alarm.is_costly else INFO,
        "severityText": "WARN" if alarm.is_costly else "INFO",
        "eventName": EVENT,
        "body": {"stringValue": alarm.line},
        "attributes": [{"key": key, "value": _value(value)} for key, value in attributes.items()],
    }
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "crosswind"}}]}
    scope = {"name": "crosswind.watch", "version": __version__}
    request = {"resourceLogs": [{"resource": resource, "scopeLogs": [{"scope": scope, "logRecords": [record]}]}]}
    return json.dumps(request, ensure_ascii=False, separators=(",", ":"))


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(one) for one in value]}}
    return {"stringValue": str(value)}
