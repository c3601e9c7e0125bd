#!/bin/sh
# Says in one sentence what the build needs and this machine lacks. Usage: check-tools.sh PYTHON
python=$1

fail() {
    echo "parity-gate needs $1" >&2
    exit 1
}

[ "$(uname -m)" = x86_64 ] ||
    fail "an x86-64 processor (for RCPSS, and for PoCL's wheel), but this one is $(uname -m)"
command -v "$python" >/dev/null ||
    fail "Python 3.11 or newer, but there is no '$python' (apt install python3, or make PYTHON=...)"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "Python 3.11 or newer, but '$python' is $("$python" --version 2>&1) (make PYTHON=python3.12, say)"
"$python" -c 'import venv, ensurepip' 2>/dev/null ||
    fail "Python's venv module, which '$python' lacks (apt install python3-venv)"
"$python" -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' ||
    fail "Python's headers, but Python.h of '$python' is missing (apt install python3-dev)"
for compiler in ${CXX:-c++ g++ clang++}; do
    command -v "$compiler" >/dev/null && exit 0
done
fail "a C++17 compiler, but there is no ${CXX:-c++, g++ or clang++} (apt install g++)"
