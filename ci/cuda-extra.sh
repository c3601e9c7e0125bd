#!/bin/sh
# Prints the extra that fits this machine's NVIDIA driver: cuda13, cuda12, or nothing without one.
driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1)
major=${driver%%.*}
case $major in
'' | *[!0-9]*) exit 0 ;; # no driver, or nvidia-smi told an error
esac
if [ "$major" -ge 580 ]; then # the first driver of CUDA 13
    echo cuda13
elif [ "$major" -ge 525 ]; then # the first driver of CUDA 12
    echo cuda12
else
    echo "the NVIDIA driver $driver is older than CUDA 12, so CUDA is left out" >&2
fi
