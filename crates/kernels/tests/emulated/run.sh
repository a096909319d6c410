#!/bin/sh
# run.sh PROGRAM [ARGUMENTS]: on an emulated CPU with AVX-512 IFMA. BOCHSCPU names the folder of the unpacked wheel.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
: "${BOCHSCPU:?unpack the bochscpu-python wheel and name its folder here; see fetch.sh}"
shim=$BOCHSCPU/glibc_shim.so
[ -f "$shim" ] || cc -O1 -shared -fPIC -o "$shim" "$here/glibc_shim.c"
LD_PRELOAD=$shim PYTHONPATH=$BOCHSCPU exec python3 "$here/emulator.py" "$@"
