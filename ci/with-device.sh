#!/usr/bin/env bash
# Runs a command on one NVIDIA GPU that no other job of this host has meanwhile: it holds a lock on a
# file named after the GPU's UUID until it ends. Usage: with-device.sh COMMAND...
#
# PARITY_GATE_LOCKS is the folder of the files, /run/lock if unset: containers must share it.
# PARITY_GATE_LOCK_TIMEOUT is how many seconds to wait, 1800 if unset.
# CUDA_VISIBLE_DEVICES, if set, names the GPUs to choose from.
set -euo pipefail
locks=${PARITY_GATE_LOCKS:-/run/lock}
timeout=${PARITY_GATE_LOCK_TIMEOUT:-1800}

among=()
[[ -z ${CUDA_VISIBLE_DEVICES:-} ]] || among=(-i "$CUDA_VISIBLE_DEVICES")
if ! uuids=$(nvidia-smi "${among[@]}" --query-gpu=uuid --format=csv,noheader) || [[ -z $uuids ]]; then
    echo "nvidia-smi names no GPU: '${uuids:-}'; see to the driver or CUDA_VISIBLE_DEVICES" >&2
    exit 3
fi

deadline=$((SECONDS + timeout))
while :; do
    for uuid in $uuids; do
        lock=$locks/parity-gate-$uuid.lock
        [[ -e $lock ]] || : >"$lock"
        exec 9<"$lock" # for reading: in a sticky folder only its owner may open it for writing
        if flock --nonblock 9; then
            echo "this job has $uuid" >&2
            export CUDA_VISIBLE_DEVICES=$uuid
            exec "$@"
        fi
    done
    ((SECONDS < deadline)) || break
    sleep 1
done
echo "no GPU became free in $timeout s:" $uuids "are locked in $locks; look for a job that hangs" >&2
exit 4
