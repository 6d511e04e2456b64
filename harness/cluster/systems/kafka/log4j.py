"""How do brokers log what is told of them, all of it to their standard output?"""

LOGGING = """\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{ISO8601} %p %c: %m%n
log4j.logger.state.change.logger=TRACE
log4j.logger.kafka.cluster.Partition=DEBUG
log4j.logger.kafka.log.UnifiedLog=TRACE
log4j.logger.org.apache.kafka.storage.internals.log.UnifiedLog=TRACE
"""
"""Their logging configuration; a line has an instant in UTC, a level, a logger and a text."""
