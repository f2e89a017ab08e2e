#!/usr/bin/env bash
# A CUDA 13.0 toolkit to build with, out of Python wheels: nvcc, ptxas, headers, the static runtime, and archives that open
# the driver and cuBLAS when they are first called. usage: toolkit.sh FOLDER CUDARC_SOURCE LAZY_SCRIPT
set -euo pipefail
folder=$1 cudarc=$2 lazy=$3
python=${PYTHON:-python3}
wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT
mkdir -p "$folder/lib64"
"$python" -m pip download --no-deps -q --only-binary=:all: -d "$wheels" \
  --platform manylinux2014_x86_64 --platform manylinux2010_x86_64 \
  --platform manylinux_2_17_x86_64 --platform manylinux_2_12_x86_64 \
  nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88 \
  nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85
for wheel in "$wheels"/*.whl; do "$python" -m zipfile -e "$wheel" "$wheels/unpacked"; done
cp -a "$wheels"/unpacked/nvidia/cu13/. "$folder"/
chmod +x "$folder"/bin/* "$folder"/nvvm/bin/*
# -lcudart means the static archive, so that no libcudart is needed at run time.
for name in libcudart_static.a:libcudart.a libcudart_static.a:libcudart_static.a libcudadevrt.a:libcudadevrt.a; do
  ln -sf "../lib/${name%:*}" "$folder/lib64/${name#*:}"
done
"$python" "$lazy" "$cudarc" "$folder/lib64"
