"""Which lines must brokers log for the harness? The levels of loggers, and a configuration for standard output."""

from collections.abc import Mapping

from harness.cluster.systems.kafka import log_reader
from harness.cluster.systems.kafka.releases import Release

REQUESTS = "kafka.request.logger"
LEVELS = {
    "state.change.logger": "TRACE",
    "kafka.cluster.Partition": "DEBUG",
    "kafka.log.UnifiedLog": "TRACE",
    "org.apache.kafka.storage.internals.log.UnifiedLog": "TRACE",
    REQUESTS: "DEBUG",
}
"""Those that differ from INFO, of all releases."""
USUAL = "INFO"
_BY_DETAIL = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF")
_PATTERN = "%d{ISO8601} %p %c: %m%n"
_LOGGING = f"""\
log4j.rootLogger={USUAL}, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern={_PATTERN}
""" + "".join(f"log4j.logger.{name}={level}\n" for name, level in LEVELS.items() if name != REQUESTS)
_PRODUCERS = f"""\
log4j.logger.{REQUESTS}={LEVELS[REQUESTS]}, requests
log4j.additivity.{REQUESTS}=false
log4j.appender.requests=org.apache.log4j.ConsoleAppender
log4j.appender.requests.layout=org.apache.log4j.PatternLayout
log4j.appender.requests.layout.ConversionPattern={_PATTERN}
log4j.appender.requests.filter.1=org.apache.log4j.varia.StringMatchFilter
log4j.appender.requests.filter.1.StringToMatch="requestApiKeyName":"PRODUCE"
log4j.appender.requests.filter.2=org.apache.log4j.varia.DenyAllFilter
"""
"""Of all requests the producers': the logger words each as JSON, and most are fetches."""


def logging(release: Release) -> str:
    """Return the logging configuration of a release; a line has an instant in UTC, a level, a logger and a text."""
    return _LOGGING + (_PRODUCERS if release.tells_answers else "")


def too_quiet(release: Release, levels: Mapping[str, str]) -> list[str]:
    """Return a phrase for each logger of a release that logs less than the patterns of its lines need.

    `levels` are those of a broker; a logger that it does not name has that of the nearest one above it.
    """
    loggers = log_reader.wording(release.version).by_logger
    needed = {name: LEVELS.get(name, USUAL) for name in loggers}
    seen = {name: _level_of(name, levels) for name in loggers}
    return [
        f"{name} logs {seen[name]}, not {level}"
        for name, level in sorted(needed.items())
        if _BY_DETAIL.index(seen[name]) > _BY_DETAIL.index(level)
    ]


def _level_of(name: str, levels: Mapping[str, str]) -> str:
    parts = name.split(".")
    above = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    level = next((levels[each] for each in above if each in levels), levels.get("root", USUAL))
    return level if level in _BY_DETAIL else USUAL
