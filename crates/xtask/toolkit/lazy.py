#!/usr/bin/env python3
"""Lazy-loading static archives (libcuda.a, libcublas.a, ...) for x86-64 Linux, so that one binary starts with and without a GPU.
Each symbol that cudarc may import becomes a trampoline: the first call dlopens the real
library and dlsyms the symbol; a missing library gives an error status, not a start failure.
usage: mklazy.py CUDARC_SRC OUTDIR"""
import re, subprocess, sys, os, tempfile
src, out = sys.argv[1:3]
LIBS = {  # archive: (cudarc module, sonames to try, status when missing)
    "cuda": ("driver", ["libcuda.so.1", "libcuda.so"], 34),
    "cublas": ("cublas", ["libcublas.so.13"], 1),
    "cublasLt": ("cublaslt", ["libcublasLt.so.13"], 1),
    "curand": ("curand", ["libcurand.so.10"], 101),
    "nvrtc": ("nvrtc", ["libnvrtc.so.13"], 11),
}
DIRS = ["", "/usr/local/cuda/lib64/", "/usr/local/cuda-13.0/lib64/", "/usr/local/cuda-13/lib64/", "/opt/cuda/lib64/", "/usr/lib/x86_64-linux-gnu/", "/usr/lib/wsl/lib/", "/usr/local/nvidia/lib64/"]
os.makedirs(out, exist_ok=True)
for lib, (mod, sonames, miss) in LIBS.items():
    text = open(f"{src}/src/{mod}/sys/mod.rs").read()
    syms = sorted(set(re.findall(r'load::<_F>\("([A-Za-z0-9_]+)"', text)))
    p = f"lz_{lib}"
    asm = [".text"]
    for i, s in enumerate(syms):
        asm += [f".globl {s}", f".type {s},@function", f"{s}:",
                f"  movq {p}_slots+{8*i}(%rip), %r11", "  testq %r11, %r11", "  je 1f", "  jmp *%r11",
                f"1: pushq ${i}", f"  jmp {p}_tramp"]
    regs = ["rdi", "rsi", "rdx", "rcx", "r8", "r9", "rax"]
    asm += [f"{p}_tramp:"] + [f"  pushq %{r}" for r in regs] + ["  subq $136, %rsp"]
    asm += [f"  movups %xmm{x}, {16*x}(%rsp)" for x in range(8)]
    asm += [f"  movq 192(%rsp), %rdi", f"  call {p}_resolve", "  movq %rax, %r11"]
    asm += [f"  movups {16*x}(%rsp), %xmm{x}" for x in range(8)] + ["  addq $136, %rsp"]
    asm += [f"  popq %{r}" for r in reversed(regs)] + ["  addq $8, %rsp", "  jmp *%r11",
            f".local {p}_slots", f".comm {p}_slots,{8*len(syms)},16",
            ".section .note.GNU-stack,\"\",@progbits"]
    # the slots must be visible to the C part of the same archive member set
    asm = [a for a in asm if not a.startswith(".local")]
    asm.insert(0, f".hidden {p}_slots"); asm.insert(0, f".hidden {p}_resolve")
    names = ",".join(f'"{s}"' for s in syms)
    paths = ",".join(f'"{d}{n}"' for n in sonames for d in DIRS)
    c = f'''
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
extern __attribute__((visibility("hidden"))) void *{p}_slots[];
static const char *const names[] = {{{names}}};
static const char *const paths[] = {{{paths}}};
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *handle;
static void open_lib(void) {{
  for (unsigned i = 0; i < sizeof paths / sizeof *paths && !handle; i++) handle = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL);
  if (!handle) fprintf(stderr, "note: {sonames[0]} not found (install the NVIDIA driver / CUDA runtime, or set LD_LIBRARY_PATH)\\n");
}}
static int missing(void) {{ return {miss}; }}
__attribute__((visibility("hidden"))) void *{p}_resolve(unsigned long i) {{
  pthread_once(&once, open_lib);
  void *f = handle ? dlsym(handle, names[i]) : 0;
  if (!f) f = (void *)missing;
  __atomic_store_n(&{p}_slots[i], f, __ATOMIC_RELEASE);
  return f;
}}
'''
    with tempfile.TemporaryDirectory() as t:
        open(f"{t}/a.S", "w").write("\n".join(asm) + "\n"); open(f"{t}/c.c", "w").write(c)
        subprocess.check_call(["gcc", "-c", "-fPIC", f"{t}/a.S", "-o", f"{t}/a.o"])
        subprocess.check_call(["gcc", "-c", "-O1", "-fPIC", f"{t}/c.c", "-o", f"{t}/c.o"])
        # one relocatable member so that pulling any symbol brings the resolver
        subprocess.check_call(["ld", "-r", f"{t}/a.o", f"{t}/c.o", "-o", f"{t}/lz.o"])
        a = f"{out}/lib{lib}.a"
        if os.path.exists(a): os.remove(a)
        subprocess.check_call(["ar", "rcs", a, f"{t}/lz.o"])
    print(lib, len(syms), "symbols")
