"""How do brokers log what is told of them, all of it to their standard output?"""

from harness.cluster.systems.kafka.releases import Release

_PATTERN = "%d{ISO8601} %p %c: %m%n"
_LOGGING = f"""\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern={_PATTERN}
log4j.logger.state.change.logger=TRACE
log4j.logger.kafka.cluster.Partition=DEBUG
log4j.logger.kafka.log.UnifiedLog=TRACE
log4j.logger.org.apache.kafka.storage.internals.log.UnifiedLog=TRACE
"""
_PRODUCERS = f"""\
log4j.logger.kafka.request.logger=DEBUG, requests
log4j.additivity.kafka.request.logger=false
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
