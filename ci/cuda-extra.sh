#!/bin/sh
# Prints the extra that fits the first NVIDIA GPU and its driver: cuda13, cuda12, or nothing.
command -v nvidia-smi >/dev/null || exit 0
gpu=$(nvidia-smi --query-gpu=driver_version,compute_cap --format=csv,noheader 2>&1) || {
    echo "nvidia-smi is here but fails: $gpu; make EXTRAS=opencl leaves CUDA out" >&2
    exit 1
}
said=$gpu
gpu=$(echo "$gpu" | head -n 1 | tr -d ' ')
driver=${gpu%%.*}            # 580.159.04,9.0 -> 580
capability=${gpu##*,}        # 580.159.04,9.0 -> 9.0
capability=$(echo "$capability" | tr -d .)
case $driver$capability in
'' | *[!0-9]*)
    echo "nvidia-smi prints no driver version: $said; make EXTRAS=opencl leaves CUDA out" >&2
    exit 1
    ;;
esac
if [ "$driver" -ge 580 ] && [ "$capability" -ge 75 ]; then # CUDA 13: its driver, Turing and newer
    echo cuda13
elif [ "$driver" -ge 525 ]; then # the first driver of CUDA 12
    echo cuda12
else
    echo "the NVIDIA driver $driver is older than CUDA 12, so CUDA is left out" >&2
fi
