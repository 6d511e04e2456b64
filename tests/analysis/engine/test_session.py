"""The session is tested in a process of its own: the tests share one that must not be ended."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.jvm, pytest.mark.rotating(2, of="sessions")]

SCRIPT = """
import sys
from pathlib import Path
import psutil
from harness.analysis.engine.session import SHUFFLED_BYTES, TASK_BYTES, spark_session, tuned

for expected in (3, 4):
    with spark_session() as spark:
        assert spark.range(expected).count() == expected
        with spark_session() as inner:
            assert inner is spark
        assert spark.range(1).count() == 1, "a session in use is not ended by the one inside"
        assert spark.conf.get("spark.ui.enabled") == "false"
        assert Path(spark.conf.get("spark.local.dir")).is_relative_to(sys.argv[1])
        assert int(spark.conf.get("spark.sql.broadcastTimeout")) > 3600, "a busy machine ends no judging"
        compiled = spark.conf.get("spark.sql.codegen.wholeStage")
        with tuned(spark, 10):
            assert spark.conf.get("spark.sql.codegen.wholeStage") == "false"
        assert spark.conf.get("spark.sql.codegen.wholeStage") == compiled
        spark.conf.unset("spark.sql.files.minPartitionNum")  # as it is on a cluster
        with tuned(spark, 10**12):
            assert spark.conf.get("spark.sql.codegen.wholeStage") == compiled
        assert spark.conf.get("spark.sql.files.minPartitionNum", None) is None
        with tuned(spark, 10**12, read_bytes=10**10):
            assert spark.conf.get("spark.sql.codegen.wholeStage") == compiled
            assert spark.conf.get("spark.sql.files.minPartitionNum") == str(-(-(10**10) // TASK_BYTES))
            assert spark.conf.get("spark.sql.shuffle.partitions") == str(-(-(10**10) // SHUFFLED_BYTES))
        listening = [c for p in psutil.Process().children(True) for c in p.net_connections() if c.status == "LISTEN"]
        assert all(c.laddr.ip in ("127.0.0.1", "::1", "::ffff:127.0.0.1") for c in listening), listening
    assert not psutil.Process().children(recursive=True), "the JVM is still there"
    assert not list(Path(sys.argv[1]).iterdir()), "the scratch folder is still there"
"""


INTERRUPTED = """
import os, signal, sys, threading, time
from pathlib import Path
import psutil
from harness.analysis.engine.session import spark_session
from harness.errors import not_interrupted

def interrupt():
    while not spark.sparkContext.statusTracker().getActiveJobsIds():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # tests that run in the background inherit that it is ignored
try:
    with spark_session() as spark:
        threading.Thread(target=interrupt, daemon=True).start()
        try:
            spark.range(10**13).selectExpr("sum(hash(id))").collect()
        except Exception as error:
            not_interrupted(error)
            print(f"taken for an error of the job: {error}")
except KeyboardInterrupt:
    print("interrupted", flush=True)
assert not psutil.Process().children(recursive=True), "the JVM is still there"
assert not list(Path(sys.argv[1]).iterdir()), "the scratch folder is still there"
"""


def run(script: str, tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_a_session_ends_with_its_jvm_and_its_scratch_folder_and_says_nothing(tmp_path: Path) -> None:
    done = run(SCRIPT, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert done.stderr == ""


def test_an_interrupt_in_the_middle_of_a_job_is_no_error_of_the_job_and_ends_the_session(tmp_path: Path) -> None:
    done = run(INTERRUPTED, tmp_path)
    assert done.stdout == "interrupted\n", done.stderr
    assert done.returncode == 0, done.stderr


def test_spark_that_does_not_start_is_said_with_the_last_words_of_its_jvm(tmp_path: Path) -> None:
    script = """
from harness.analysis.engine.session import spark_session
from harness.errors import HarnessError
try:
    with spark_session():
        pass
except HarnessError as error:
    print(error)
"""
    done = run(script, tmp_path, JAVA_HOME="/nonexistent")
    assert done.stdout.startswith("Spark did not start: ")
    assert "/nonexistent/bin/java" in done.stdout
    assert not list(tmp_path.iterdir())


def test_the_last_words_of_a_jvm_say_what_and_not_where(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(
        "#!/bin/sh\nprintf 'BindException: in use\\n\\tat a.B.c(B.java:1)\\n\\t... 20 more\\n' >&2; exit 1\n"
    )
    java.chmod(0o755)
    script = """
from harness.analysis.engine.session import spark_session
from harness.errors import HarnessError
try:
    with spark_session():
        pass
except HarnessError as error:
    print(error)
"""
    output = run(script, tmp_path, JAVA_HOME=str(tmp_path)).stdout
    assert "the end of its log: BindException: in use" in output
    assert "B.java" not in output
    assert "20 more" not in output


def test_a_process_that_ends_while_another_thread_judges_leaves_nothing(tmp_path: Path) -> None:
    script = """
import threading
from harness.analysis.engine.bisection import bisect_rows
from harness.analysis.engine.session import spark_session
from harness.errors import SparkError

started = threading.Event()
def judge():
    with spark_session() as spark:
        def job(part):
            started.set()
            spark.range(10**13).selectExpr("sum(hash(id))").collect()
        try:
            for part, error in bisect_rows([1, 2, 3], job, (Exception,)):
                print("it went on after", error)
        except SparkError:
            started.wait()
            threading.Event().wait()
threading.Thread(target=judge, daemon=True).start()
assert started.wait(500)
"""
    done = run(script, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not list(tmp_path.iterdir())


def test_settings_of_the_users_win(tmp_path: Path) -> None:
    script = """
from harness.analysis.engine.session import spark_session
with spark_session() as spark:
    java = spark._jvm.java.lang
    print(java.Runtime.getRuntime().maxMemory() < 1.5e9, java.System.getProperty("said"))
    print(spark.conf.get("spark.hadoop.fs.s3a.endpoint"), java.System.getProperty("java.net.preferIPv4Stack"))
"""
    settings = (
        "spark.driver.memory=1g spark.hadoop.fs.s3a.endpoint=http://127.0.0.1:9 "
        "'spark.driver.extraJavaOptions=-Dsaid=yes -Dtoo=1'"
    )
    done = run(script, tmp_path, CHAOS_SPARK_CONF=settings)
    assert done.stdout == "True yes\nhttp://127.0.0.1:9 true\n", done.stderr
