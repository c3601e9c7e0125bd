#!/bin/sh
# Says in one sentence that this runner has no GPU, if a backend that must run needs one.
# Usage: probe-runner.sh BACKEND...
for backend in "$@"; do
    case $backend in
    cuda | opencl:nvidia) ;;
    *) continue ;;
    esac
    if ! gpus=$(nvidia-smi -L 2>&1) || [ -z "$gpus" ]; then
        echo "$backend is required, but this runner shows no NVIDIA GPU: '$gpus';" \
            "mend it, or switch the lane off" >&2
        exit 3
    fi
    echo "$gpus"
    exit 0
done
