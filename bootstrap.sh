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

can_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; }

apt_install() { # PACKAGE... : refreshes the lists once
    say "installing $* (Debian packages)"
    [ -n "${refreshed:-}" ] || { apt-get update -qq >&2 || fail "apt-get update failed; check the network and try again"; refreshed=1; }
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null ||
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
    [ -n "${refreshed:-}" ] || { apt-get update -qq >&2; refreshed=1; }
    apt_install "$(first_of openjdk-17-jre-headless openjdk-21-jre-headless || fail 'this distribution has neither openjdk-17 nor openjdk-21; install a Java 17 or 21 and set JAVA_HOME')"
    find_java >/dev/null || fail "the installed Java does not start; set JAVA_HOME to a Java 17 or 21"
fi

# One stamp a requirements file: its digest when it was last installed.
python=$(find_python)
if [ ! -x "$venv/bin/python" ] || ! python_fits "$venv/bin/python"; then
    say "making $venv with $("$python" --version)"
    rm -rf "$venv"
    if ! "$python" -m venv "$venv" >/dev/null 2>&1; then
        rm -rf "$venv"
        can_install || fail "$python cannot make a virtual environment; install its venv module, e.g. 'sudo apt-get install python3-venv'"
        apt_install "$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')"
        "$python" -m venv "$venv"
    fi
fi
install() { # FILE
    stamp="$venv/$1.installed"
    sum=$(cksum <"$1")
    if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$sum" ]; then return; fi
    say "installing $1 into $venv (a minute or two)"
    "$venv/bin/python" -m pip install -q --disable-pip-version-check --no-input --require-hashes -r "$1" ||
        fail "pip could not install $1; the lines above say why"
    printf '%s\n' "$sum" >"$stamp"
}
install requirements.txt
for extra in "$@"; do install "$extra"; done
stamp="$venv/project.installed"
sum=$(cksum <pyproject.toml)
if [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$sum" ]; then
    "$venv/bin/python" -m pip install -q --disable-pip-version-check --no-input --no-build-isolation --no-deps -e . ||
        fail "the project itself could not be installed; the lines above say why"
    printf '%s\n' "$sum" >"$stamp"
fi
