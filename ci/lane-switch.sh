#!/bin/sh
# Tells the workflow whether a lane is on, and everybody when it is off.
# Usage: lane-switch.sh LANE on|off|''
set -eu
lane=$1 switch=$2

case $switch in
on)
    echo "lane=on" >>"$GITHUB_OUTPUT"
    ;;
off | '')
    echo "lane=off" >>"$GITHUB_OUTPUT"
    sentence="Lane $lane is off (PARITY_GATE_GPU_LANE is '$switch'): nothing was run, nothing proved."
    echo "::notice title=lane off::$sentence"
    echo "$sentence" >>"$GITHUB_STEP_SUMMARY"
    ;;
*)
    echo "PARITY_GATE_GPU_LANE '$switch' is not supported; allowed: on, off" >&2
    exit 2
    ;;
esac
