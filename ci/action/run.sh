#!/usr/bin/env bash
# Runs parity-gate, found on PATH, as the action's inputs say; they come as variables.
set -euo pipefail
set -f # globs of cells are the gate's
ci=$(cd "$(dirname "$0")/.." && pwd)

read -ra arguments <<<"$COMMAND"
[[ -z $MATRIX ]] || arguments+=("$MATRIX")
lock=()
for backend in $REQUIRE; do
    arguments+=(--require "$backend")
    case $backend in cuda | opencl:nvidia) lock=("$ci/with-device.sh") ;; esac
done
for glob in $CELLS; do
    arguments+=(--cell "$glob")
done
[[ -z $SHARD ]] || arguments+=(--shard "$SHARD")

if ((${#lock[@]})); then # what a machine of one's own has changes without notice
    "${lock[@]}" parity-gate doctor || echo "doctor found something broken; the run decides" >&2
fi
exec "${lock[@]}" parity-gate "${arguments[@]}" --out "$OUT"
