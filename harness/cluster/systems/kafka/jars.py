"""Where are the jars of a release of Apache Kafka, and how are they fetched?

Maven copies a release with all that it needs into a folder of its own in the cache, whose path `CHAOS_KAFKA` overrides.
With a folder of jars there, nothing is fetched.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from harness.cluster.systems.kafka.releases import Release
from harness.errors import ClusterError

VARIABLE = "CHAOS_KAFKA"
CHECKSUMS = "SHA256SUMS"
"""In the folder of a release that was fetched: what each jar was then, as `sha256sum --check` reads it."""
_LOGGING = ("org.slf4j", "slf4j-reload4j", "1.7.36")
_POM = """\
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>kafka-chaos-harness</groupId><artifactId>kafka</artifactId><version>1</version>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""
_DEPENDENCY = "    <dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"
TAIL_LINES = 5


def folder_of(release: Release) -> Path:
    """Return where the jars of a release lie, or would."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.environ.get(VARIABLE) or f"{cache}/kafka-chaos/kafka").expanduser() / release.version


def lacking(release: Release) -> str:
    """Return why a release cannot be started from its folder; empty if it can."""
    folder = folder_of(release)
    if any(folder.glob(f"kafka_*-{release.version}.jar")):
        return ""
    return f"no jars of Apache Kafka {release.version} in {folder}; fetch them with: chaos kafka get {release.version}"


def class_path(release: Release) -> str:
    """Return the class path of a release."""
    return f"{folder_of(release)}/*"


def fetch(release: Release, doing: Callable[[str], None]) -> Path:
    """Fetch a release with Maven, unless it is there, and return its folder; one that was cut short is not there.

    Args:
        release: The release.
        doing: Is told each line that Maven prints.

    Raises:
        ClusterError: there is no Maven, or it could not fetch everything; says why.
    """
    folder = folder_of(release)
    if not lacking(release):
        return folder
    maven = shutil.which("mvn")
    if maven is None:
        raise ClusterError(f"no mvn in PATH, with which jars are fetched; or put the jars into {folder}")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ClusterError(f"no folder for releases can be made: {error}") from error
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{release.version}-") as scratch:
        pom, jars = Path(scratch, "pom.xml"), Path(scratch, "jars")
        wanted = (("org.apache.kafka", f"kafka_{release.scala}", release.version), _LOGGING, *release.besides)
        pom.write_text(_POM.format(dependencies="\n".join(_DEPENDENCY.format(*each) for each in wanted)))
        argv = [maven, "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={jars}"]
        _run([*argv, "-DincludeScope=runtime"], doing)
        sums = [f"{hashlib.sha256(jar.read_bytes()).hexdigest()}  {jar.name}\n" for jar in sorted(jars.glob("*.jar"))]
        (jars / CHECKSUMS).write_text("".join(sums), encoding="ascii")
        try:
            jars.rename(folder)
        except OSError as error:  # another one was quicker, or jars of another origin lie there
            if lacking(release):
                raise ClusterError(f"{folder} cannot be put in place: {error}") from error
    return folder


def changed(release: Release) -> list[str]:
    """Return the names of jars that are not what was fetched; empty if no record of the fetch exists."""
    folder = folder_of(release)
    try:
        lines = (folder / CHECKSUMS).read_text(encoding="ascii").splitlines()
    except FileNotFoundError:
        return []
    stated = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    there = {jar.name: hashlib.sha256(jar.read_bytes()).hexdigest() for jar in folder.glob("*.jar")}
    return sorted(name for name in stated.keys() | there.keys() if stated.get(name) != there.get(name))


def _run(argv: list[str], doing: Callable[[str], None]) -> None:
    lines: list[str] = []
    with subprocess.Popen(  # noqa: S603  arguments of our own
        argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        for line in map(str.rstrip, process.stdout):
            lines.append(line)
            doing(line)
    if process.returncode:
        errors = [line for line in lines if "ERROR" in line][:TAIL_LINES] or lines[-TAIL_LINES:]
        raise ClusterError("\n".join(["Maven could not fetch the jars:", *errors]))
