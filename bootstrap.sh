#!/bin/sh
# Finds Python 3.11 to 3.13 and Java 17 or 21, installs what is missing where that is possible (root on Debian or
# Ubuntu), and puts the locked requirements into .venv. Prints nothing when there is nothing to do.
#   ./bootstrap.sh                 what the harness needs
#   ./bootstrap.sh requirements-dev.txt   and what its tests need
set -eu
cd "$(dirname "$0")"
venv=${VENV:-.venv}

say() { printf '%s\n' "bootstrap: $*" >&2; }
fail() { say "$*"; exit 4; }

# step WHAT COMMAND...: says what begins, every 15 s that it goes on, and how many seconds it took.
step() {
    what=$1 begun=$(date +%s)
    shift
    say "$what"
    pulse & beating=$!
    "$@" && outcome=0 || outcome=$?
    kill "$beating" 2>/dev/null || true
    [ "$outcome" != 0 ] || say "$what: $(($(date +%s) - begun)) s"
    return "$outcome"
}

pulse() { # ends with this script, however that ends
    nap=
    trap 'kill $nap 2>/dev/null; exit' TERM
    while sleep 15 >/dev/null 2>&1 & nap=$!; wait "$nap"; kill -0 $$ 2>/dev/null; do
        say "$what: for $(($(date +%s) - begun)) s already"
    done
}

can_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; }

apt_refresh() { # once
    [ -n "${refreshed:-}" ] || step "refreshing the lists of Debian packages" apt-get update -qq >&2 ||
        fail "apt-get update failed; check the network and try again"
    refreshed=1
}

apt_install() { # PACKAGE...
    apt_refresh
    step "installing $* (Debian packages)" \
        env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null ||
        fail "apt-get could not install $*; install them by hand and try again"
}

python_fits() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1; }

find_python() {
    for candidate in ${PYTHON:-} python3.11 python3.12 python3.13 python3 /usr/bin/python3 /usr/bin/python3.1[123]; do
        if python_fits "$candidate"; then printf '%s\n' "$candidate"; return; fi
    done
    return 1
}

java_fits() { case $("$1" -version 2>&1) in *'version "17'* | *'version "21'*) return 0 ;; *) return 1 ;; esac; }

find_java() {
    for candidate in ${JAVA_HOME:+"$JAVA_HOME/bin/java"} java /usr/lib/jvm/*/bin/java; do
        if command -v "$candidate" >/dev/null 2>&1 && java_fits "$candidate"; then printf '%s\n' "$candidate"; return; fi
    done
    return 1
}

first_of() { # PACKAGE... : the first one that the distribution has
    for package in "$@"; do
        if apt-cache show "$package" >/dev/null 2>&1; then printf '%s\n' "$package"; return; fi
    done
    return 1
}

if ! find_python >/dev/null; then
    can_install || fail "no Python 3.11 to 3.13 found; install one, e.g. 'sudo apt-get install python3 python3-venv' or 'brew install python@3.13', or name it: make PYTHON=/path/to/python3.12"
    apt_install python3 python3-venv
    find_python >/dev/null || fail "this distribution's python3 is not 3.11 to 3.13; install one of them and name it: make PYTHON=/path/to/python3.12"
fi
if ! find_java >/dev/null; then
    can_install || fail "no Java 17 or 21 found; install one, e.g. 'sudo apt-get install openjdk-17-jre-headless' or 'brew install openjdk@17', or name it: JAVA_HOME=/path/to/jdk-17"
    apt_refresh
    apt_install "$(first_of openjdk-17-jre-headless openjdk-21-jre-headless || fail 'this distribution has neither openjdk-17 nor openjdk-21; install a Java 17 or 21 and set JAVA_HOME')"
    find_java >/dev/null || fail "the installed Java does not start; set JAVA_HOME to a Java 17 or 21"
fi

python=$(find_python)
make_venv() { "$python" -m venv "$venv"; }
if [ ! -x "$venv/bin/python" ] || ! python_fits "$venv/bin/python"; then
    rm -rf "$venv"
    making="making $venv with $("$python" --version)"
    if ! step "$making" make_venv; then
        rm -rf "$venv"
        can_install || fail "$python cannot make a virtual environment; install its venv module, e.g. 'sudo apt-get install python3-venv'"
        apt_install "$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')"
        step "$making" make_venv || fail "$venv could not be made; the lines above say why"
    fi
fi

pip() { "$venv/bin/python" -m pip install -q --disable-pip-version-check --no-input "$@"; }

find_uv() {
    for candidate in "$venv/bin/uv" uv; do
        if "$candidate" --version >/dev/null 2>&1; then printf '%s\n' "$candidate"; return; fi
    done
    return 1
}

locked_uv() { # into the environment; the tests' lock pins it
    sed -n '/^uv==/,/[^\\]$/p' requirements-dev.txt | pip --require-hashes -r /dev/stdin
}

install() { # ARGUMENT... : by uv, in a fifth of the time; by pip where no uv goes or only pip knows the way to packages
    if uv=$(find_uv); then
        if "$uv" pip install -q --python "$venv/bin/python" "$@"; then
            # pyspark comes as source only, and behind some mirrors uv builds it anew each time: 1.4 GB that nothing uses.
            "$uv" cache prune -q || true
            return
        fi
        say "uv could not; once more with pip, which takes a minute or two"
    fi
    pip "$@"
}

# once STAMP FILE WHAT ARGUMENT...: installs, unless that was done already for the file as it is now.
once() {
    stamp="$venv/$1.installed" sum=$(cksum <"$2") name=$3
    shift 3
    if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$sum" ]; then return; fi
    find_uv >/dev/null || step "installing uv" locked_uv || say "uv could not be installed; pip takes a minute or two"
    step "installing $name" install "$@" || fail "$name could not be installed; the lines above say why"
    printf '%s\n' "$sum" >"$stamp"
}

for lock in requirements.txt "$@"; do once "$lock" "$lock" "$lock into $venv" --require-hashes -r "$lock"; done
once project pyproject.toml "the project itself" --no-build-isolation --no-deps -e .
