"""The errors of the harness itself, one tree; a misbehaving cluster is a verdict, never one of these.

The command line maps each class to one exit code (`harness/cli/exit_codes.py`); a message says what was expected,
what was seen, and where.
"""


class HarnessError(Exception):
    """The harness or its environment broke; the base of all errors raised on purpose."""


class ScenarioError(HarnessError):
    """A scenario, suite or option is wrong; nothing was started. Exit code 2."""


class Refused(ScenarioError):
    """A scenario needs what this machine or the driver cannot do; nothing was started. Exit code 2."""


class PluginError(HarnessError):
    """A plugin is missing, declared wrongly, or needs what the driver cannot do. Exit code 2."""


class EvidenceError(HarnessError):
    """A run folder lacks what a phase needs, or has an unreadable file. Exit code 2."""


class ClusterError(HarnessError):
    """The cluster, ZooKeeper or a client process could not be started, reached or stopped. Exit code 4."""


class NotInstalled(HarnessError):
    """A command needs a package of an extra; the message names both. Exit code 4."""


class SparkError(ClusterError):
    """Spark did not start, or has ended, so nothing can be judged; the message has the end of its log. Exit code 4."""


class DeadlineError(ClusterError):
    """An awaited state was not reached in time; the message says what was last seen. Exit code 4."""


class Interrupted(HarnessError):
    """A signal ended a phase; faults in force are healed. Exit code 3, or 1 if checks had found a violation."""


def not_interrupted(error: BaseException) -> None:
    """Raise KeyboardInterrupt if an error hides one in its context; call this before going on after an error.

    Ctrl-C breaks the connection to the JVM. PySpark's clean-up of the interrupted call (`SCCallSiteSync`) needs that
    connection, and raises an error in place of the interrupt.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, KeyboardInterrupt):
            raise KeyboardInterrupt from error
        cause = cause.__context__
