"""What can go wrong in the harness itself, as one tree: a misbehaving cluster is a verdict, never one of these.

The command line maps each class to one exit code (`harness/cli/app.py`); a message says what was expected, what was
seen, and where.
"""


class HarnessError(Exception):
    """The harness or its environment broke; the base of all errors raised on purpose."""


class ScenarioError(HarnessError):
    """A scenario, suite or option is wrong; nothing was started. Exit code 2."""


class Refused(ScenarioError):
    """A scenario asks for what this machine or the driver cannot do; nothing was started. Exit code 2."""


class PluginError(HarnessError):
    """A plugin is missing, misdeclared, or asked for something that the driver cannot do. Exit code 2."""


class EvidenceError(HarnessError):
    """A run folder lacks what a phase needs, or holds something unreadable. Exit code 2."""


class ClusterError(HarnessError):
    """The cluster, ZooKeeper or a client process could not be started, reached or stopped. Exit code 4."""


class NotInstalled(HarnessError):
    """A command takes a package that only an extra of the project brings; the message names both. Exit code 4."""


class SparkError(ClusterError):
    """Spark did not start, so nothing can be judged; the message has the end of its log. Exit code 4."""


class DeadlineError(ClusterError):
    """Something awaited did not happen in time; the message says what was last seen. Exit code 4."""


class Interrupted(HarnessError):
    """Ctrl-C or SIGTERM ended a phase; what was in force is healed. Exit code 3 unless a violation was found."""


def not_interrupted(error: BaseException) -> None:
    """Raise KeyboardInterrupt if the error stands for one.

    Ctrl-C cuts the connection to the JVM; PySpark's clean-up of the call that it met (`SCCallSiteSync`) needs that
    connection, and its error takes the interrupt's place. Who goes on after an error asks this first.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, KeyboardInterrupt):
            raise KeyboardInterrupt from error
        cause = cause.__context__
