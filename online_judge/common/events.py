"""One log line per event; with ``LOG_FORMAT=json`` one JSON object per line."""

import json
import logging
import time

log = logging.getLogger(__name__)

TEXT_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def log_event(event: str, **fields: str | int | float | None) -> None:
    """Log an event such as ``job.done`` with its fields (``job``, ``kind``, ``status``, ``seconds`` ...)."""
    given = {name: value for name, value in fields.items() if value is not None}
    known = {name: round(fact, 4) if isinstance(fact, float) else fact for name, fact in given.items()}
    line = " ".join([event, *(f"{name}={fact}" for name, fact in known.items())])
    log.info("%s", line, extra={"event": event, "fields": known})


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        begun = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, object] = {
            "time": f"{begun}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        event = getattr(record, "event", None)
        fields = {"event": event, **getattr(record, "fields", {})}
        line |= {"message": record.getMessage()} if event is None else fields
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)
