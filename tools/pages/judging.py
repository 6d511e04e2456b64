"""The page on histories that others recorded, made from the code's own words: `python -m tools.pages`.

A test holds that `docs/judging.md` is what this makes, and that its example comes to what it says.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.analysis.sources.origins import FACT_EVENTS
from harness.contracts import registry
from harness.ingest.answer import needed_for
from harness.ingest.expansion import ALWAYS_BYTES, ALWAYS_VALUES, EXPANSION
from harness.ingest.formats import LINKS, Field, Format, formats, nested
from harness.ingest.settings import AllowedSettings
from harness.system.chain import all_chained
from tools.pages.checks import in_order

PAGE = Path("docs/judging.md")
EXAMPLE = Path("docs/examples/lost-write")
COMMAND = (
    f"chaos judge --operations {EXAMPLE}/operations.jsonl --settings {EXAMPLE}/settings.yaml "
    "--check lost-write --check phantom --check I9 --into judged/example"
)
_HEAD = """\
# Judging a history that somebody else recorded

Made from the code by `python -m tools.pages`; do not edit.

`chaos judge` takes what another client, another broker or another harness has left, runs every check for which there is
evidence, and says of all other promises what evidence they would take. Nothing else of this project is needed: no
cluster, no scenario, no run folder."""
_GIVING = f"""\
## What to give

Each option takes a file, a folder or a glob, on this machine or, by Apache Spark alone, behind any URI whose file
system Hadoop knows (`hdfs://…`, `s3a://…`), and can be repeated. Names end in `.jsonl`, `.ndjson` or `.json` (one JSON
object a line; compressed as `.gz`, `.bz2` or `.zst` too) or in `.parquet`. A Parquet table has the same fields as
columns, of the same types; whole numbers of any width will do, and an object whose type is not fixed (`parameters`,
`result`, …) is its JSON as text.

A field that must be there and is not, a value of another type, an unknown key, a word where others are expected: such a
line is none. Its file is remarked on with the number of the first such line and what is wrong in it, and checks that
rest on this kind of evidence answer UNKNOWN instead of PASS. So do they where lines are missing (numbers have gaps) or
are there twice. A last line that is torn, as a killed process leaves it, is remarked on and costs no answer. Parquet
whose columns do not fit, files that are empty or missing, and other formats are refused before anything is judged.

A few bytes of Parquet or gzip can stand for more than any disk takes. So a file may hold {EXPANSION} times its size, in
bytes when it is unpacked and in values of a column; {ALWAYS_BYTES >> 20} MiB and {ALWAYS_VALUES:,} values are fine
always. What holds more is refused, too; `--expansion` raises the bound.

Instants are nanoseconds on one monotonic clock for all clients; of brokers only their own order counts. Value ids are
unique in a history; where they are not, checks that follow records answer UNKNOWN. A reader goes on where it ended, and
is another process after a seek; where its polls have no `mode` it is one whom a rebalance may move. A rebalance
explains no step within one ownership: from `assigned` to `revoked`, `lost`, `leave` or the partition's next `assigned`.

The exit code is 1 when a promise is broken, 3 when a check with evidence could not answer, evidence is damaged or no
promise had any, else 0; 2 for a command that cannot be carried out. `--into` has facts ([checks.md](checks.md)),
findings, `verdict.json` and `report.html` in the end; `--json` prints the answer.

## On a cluster, in an object store

By Apache Spark `--into` takes any URI whose file system Hadoop knows. On a cluster whose machines share no disk it has
to: each executor writes its part of facts and findings there. The report is then made of what Spark adds up, so that
little comes to this machine however long the history is. Jars of file systems that Spark does not bring, and how to
reach them, are settings of Spark. With an S3-style server (`hadoop-aws` in the version of Spark's Hadoop, and what it
depends on, 650 MB):

```
$ mvn dependency:copy-dependencies -f docs/examples/s3a/pom.xml -DoutputDirectory=$PWD/s3a-jars
$ export CHAOS_SPARK_CONF="spark.driver.extraClassPath=$PWD/s3a-jars/*
    spark.hadoop.fs.s3a.endpoint=http://127.0.0.1:9000 spark.hadoop.fs.s3a.endpoint.region=us-east-1
    spark.hadoop.fs.s3a.path.style.access=true spark.hadoop.fs.s3a.connection.ssl.enabled=false
    spark.hadoop.fs.s3a.access.key=KEY spark.hadoop.fs.s3a.secret.key=SECRET"
$ chaos judge --operations s3a://bucket/history/operations --into s3a://bucket/judged/history
```

On a cluster executors need the same jars, at the same path: `spark.executor.extraClassPath`. Keys can stay out of the
settings: without them `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY` are used.

## Which engine judges

Apache Spark, in a JVM on this machine or on the cluster that `--master` names. `chaos run`, `rejudge`, `judge` and
`sql` do without a JVM, and so does the judging of `chaos simulate`: `--engine sail` (or `CHAOS_ENGINE=sail`, also for
tasks of Airflow) starts
[Sail](https://lakesail.com) in the same process, which takes a sixth of the CPU time for a small run. `pip install
'.[sail]'` brings it, 66 MB. It answers as Apache Spark does, check by check, and tests hold it to that. Until
the judging ends it listens on a port of the loopback interface and asks nobody who connects for a name. Whoever
connects may have it read and write files as you: leave it to machines whose users you trust.

`CHAOS_SPARK_REMOTE=sc://HOST:PORT` names a server of Spark Connect that judges instead, of Apache Spark or of Sail
(with `SAIL_EXECUTION__CHECKPOINT__PATH` set). It has to see the runs, and `TMPDIR`, at the same path as this machine;
one that does not is refused. Without a JVM there are paths of this machine alone, a glob knows `*`, `?` and `[…]`,
text may be packed as `.gz`, `.bz2` or `.zst`, lines go through this process, `--master` is refused, and SQL is Sail's,
which knows no `describe`. Schedules are simulated by Apache Spark, being Python in its tasks, on the cluster that
`--master` names. It ends then, and the engine that was chosen judges them; `--shrink`, `chaos shrink` and `chaos keep`,
which simulate and judge in turn, take Apache Spark for both."""

_PROOF = """\
## Files that prove that they are whole

Lines of any kind but those of dumps may end with two fields more, as those that this harness writes do; whoever has
written all of a file ends with how many lines that were, which is no line of evidence. There is no space around these
fields, nor in an end, and no blank line; each line ends with a newline alone:"""
_PROOF_USED = """\
The first chain of a writer begins with 0, each other one with the chain before it. A file of JSON Lines with such a
line among its first is proved. Where a line was deleted, doubled, joined to another, moved or changed, its file is
remarked on with the number of the line, and checks that rest on this kind of evidence answer UNKNOWN, whatever was
found: what is lost looks like somebody who did nothing. A file of `--operations`, `--zookeeper`, `--journal` or
`--liveness` without its end may lack what its writer had still to say: that forbids PASS, and takes no other answer
away. One writer may follow another in a file. Other files are read as they are, and nothing proves them; so are
Parquet tables, whose columns of these names are passed over."""
_CHANGES = (b'{"zxid":7}\n', b'{"zxid":9}\n')


def page() -> str:
    """Return the page as Markdown."""
    parts = [_HEAD, "", *_example(), "", _GIVING, "", *_settings(), "", *_proof(), *_formats(), "", *_promises()]
    return "\n".join(parts) + "\n"


def _example() -> Iterator[str]:
    yield "## Example"
    yield ""
    yield "Three records were acknowledged; whoever read the third had not seen the second."
    for name in ("operations.jsonl", "settings.yaml"):
        yield ""
        yield f"[`{name}`]({EXAMPLE.relative_to(PAGE.parent)}/{name}):"
        yield ""
        yield "```"
        yield (EXAMPLE / name).read_text(encoding="utf-8").rstrip()
        yield "```"
    yield ""
    yield "```"
    yield f"$ {COMMAND}"
    yield (EXAMPLE / "output.txt").read_text(encoding="utf-8").rstrip()
    yield "```"


def _settings() -> Iterator[str]:
    yield "## What was allowed"
    yield ""
    yield "In a YAML file (`--settings`) or one by one (`--set min_insync_replicas=2`); what is not said is assumed,"
    yield "and the answer says so."
    yield ""
    yield "| setting | assumed | means |"
    yield "|---|---|---|"
    for name, field in AllowedSettings.model_fields.items():
        default = "all" if name == "acks" else str(field.default).lower()
        yield f"| `{name}` | {default} | {field.description} |"


def _proof() -> Iterator[str]:
    yield _PROOF
    yield ""
    yield "```"
    yield b"".join(all_chained(_CHANGES)).decode().rstrip()
    yield "```"
    yield ""
    yield from _table(LINKS, {field.name: "" for field in LINKS})
    yield ""
    yield _PROOF_USED


def _formats() -> Iterator[str]:
    for form in formats().values():
        yield ""
        yield f"## `{form.option}`"
        yield ""
        yield form.about
        yield from _by_kind(form) if form.tells == "ev" else _together(form)
    yield ""
    yield "## Objects within lines"
    for name, fields in nested().items():
        yield ""
        yield f"### {name.capitalize()}"
        yield ""
        yield from _table(fields, {field.name: "yes" if field.required else "" for field in fields})


def _together(form: Format) -> Iterator[str]:
    """One table of all fields: kinds of lines share most of them."""
    if form.tells:
        yield ""
        yield f"| `{form.tells}` | is |"
        yield "|---|---|"
        for line in form.lines:
            yield f"| `{line.name}` | {line.about} |"
    fields = {field.name: field for line in form.lines for field in line.fields}
    needed = {name: [line.name for line in form.lines if name in line.required] for name in fields}
    must = {
        name: "yes" if len(lines) == len(form.lines) else ", ".join(f"`{line}`" for line in lines)
        for name, lines in needed.items()
    }
    yield ""
    yield from _table(fields.values(), must)


def _by_kind(form: Format) -> Iterator[str]:
    """One table of what all lines share, and one for each kind that facts are made of."""
    kinds = [kind.ev for kind in FACT_EVENTS]
    shared = form.lines[0].fields[: next(i for i, field in enumerate(form.lines[0].fields) if field.name == "ev") + 1]
    names = {field.name for field in shared}
    yield ""
    yield from _table(shared, {field.name: "yes" if field.required else "" for field in shared}, choices=False)
    for line in form.lines:
        if line.name in kinds:
            own = [field for field in line.fields if field.name not in names]
            yield ""
            yield f"### `{line.name}`"
            yield ""
            yield line.about
            yield ""
            yield from _table(own, {field.name: "yes" if field.required else "" for field in own})
    yield ""
    others = ", ".join(f"`{line.name}`" for line in form.lines if line.name not in kinds)
    yield f"These kinds are known too, and no fact is made of them: {others}."


def _table(fields: Iterable[Field], must: dict[str, str], *, choices: bool = True) -> Iterator[str]:
    yield "| field | type | must be there | else | means |"
    yield "|---|---|---|---|---|"
    for field in fields:
        default = "" if field.default is None else f"`{field.default}`" if field.default != "" else "empty"
        one_of = f"One of {', '.join(f'`{choice}`' for choice in field.choices)}." if choices and field.choices else ""
        about = " ".join(part for part in (field.about, one_of) if part)
        yield f"| `{field.name}` | {field.type} | {must[field.name]} | {default} | {about} |"


def _promises() -> Iterator[str]:
    yield "## Which promise takes which evidence"
    yield ""
    yield "| check | promise | evidence |"
    yield "|---|---|---|"
    for check in in_order(registry.check(name) for name in registry.names(registry.Kind.CHECK)):
        yield f"| {check.title} | {check.promise} | {'; '.join(needed_for(check.needs, {}))} |"
