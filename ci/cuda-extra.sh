#!/bin/sh
# Prints the extra that fits the first NVIDIA GPU and its driver: cuda13, cuda12, or nothing.
gpu=$(nvidia-smi --query-gpu=driver_version,compute_cap --format=csv,noheader 2>/dev/null |
    head -n 1 | tr -d ' ')
driver=${gpu%%.*}            # 580.159.04,9.0 -> 580
capability=${gpu##*,}        # 580.159.04,9.0 -> 9.0
capability=$(echo "$capability" | tr -d .)
case $driver$capability in
'' | *[!0-9]*) exit 0 ;; # no driver, or nvidia-smi told an error
esac
if [ "$driver" -ge 580 ] && [ "$capability" -ge 75 ]; then # CUDA 13: its driver, Turing and newer
    echo cuda13
elif [ "$driver" -ge 525 ]; then # the first driver of CUDA 12
    echo cuda12
else
    echo "the NVIDIA driver $driver is older than CUDA 12, so CUDA is left out" >&2
fi
