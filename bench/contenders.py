"""Who takes part in the benchmark, how each is started, and with which settings of its environment.

A contender is a name, a command for a model, and environment variables. The peers' settings are the best that were found for
them (docs/performance.md tells what each is for); Yoke runs with none.
"""
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
MODELS = ("cifar10", "resnet20", "mlp")
BATCHES = {"cifar10": 128, "resnet20": 128, "mlp": 256, "lstm": 64, "trivial": 2}
PACKAGES = {"torch": "torch", "tensorflow": "tensorflow-cpu", "jax": "jax"}  # module: what pip calls it

# Variables from outside that would change what is measured.
DROPPED = ("OMP_", "GOMP_", "KMP_", "MKL_", "MALLOC_", "GLIBC_TUNABLES", "TF_", "XLA_", "JAX_", "TORCH", "ATEN_", "DNNL_", "ONEDNN_", "YOKE_")

# malloc that keeps what was freed, in huge pages: a page fault costs more than many a kernel.
KEEP_MEMORY = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", "MALLOC_MMAP_THRESHOLD_": "8589934592",
               "MALLOC_TRIM_THRESHOLD_": "17179869184", "MALLOC_TOP_PAD_": "67108864"}


class Contender:
    """`group` is yoke, scaling, floor, or the module of a peer; `why_not` tells why it cannot run, if so."""

    def __init__(self, name, group, command, models, env=None):
        self.name, self.group, self.command, self.models, self.env, self.why_not = name, group, command, models, env or {}, None

    def argv(self, model, seconds):
        return [word.format(model=model, batch=BATCHES[model], seconds=seconds) for word in self.command]


def own(programs, threads):
    """Yoke on one device, on one or two more ways for the scaling, and the floor."""
    def yoke(devices):
        return [str(programs / "yoke_step"), "{model}", devices, "{batch}", "{seconds}"]

    yield Contender("yoke", "yoke", yoke("cpu:0"), (*MODELS, "trivial"))
    yield Contender("yoke", "yoke", [str(programs / "yoke_lstm"), "lstm", "{batch}", "{seconds}", str(threads)], ("lstm",))
    yield Contender("floor", "floor", [str(programs / "floor"), "{model}", "{batch}", "{seconds}"], (*MODELS, "lstm"),
                    {"OMP_NUM_THREADS": str(threads)})
    if threads > 1:
        yield Contender("yoke gpu:0", "scaling", yoke("gpu:0"), MODELS)
        yield Contender("yoke gpu:0,gpu:1", "scaling", yoke("gpu:0,gpu:1"), MODELS)
        yield Contender("yoke cpu:0,cpu:1", "scaling", yoke("cpu:0,cpu:1"), MODELS)


def peers(python, threads, cache, tuned):
    """The same step in other systems; `tuned` false: as they come, but for the number of threads."""
    def peer(script, mode):
        return [str(python), str(HERE / "peers" / script), "{model}", mode, "{batch}", "{seconds}"]

    common = {"OMP_NUM_THREADS": str(threads), "YOKE_BENCH_THREADS": str(threads), "CUDA_VISIBLE_DEVICES": "",
              "TF_CPP_MIN_LOG_LEVEL": "3", "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"), "PYTHONPYCACHEPREFIX": str(cache / "pycache")}
    best = {"torch": KEEP_MEMORY, "tensorflow": {**KEEP_MEMORY, "TF_ENABLE_ONEDNN_OPTS": "1"},
            "jax": KEEP_MEMORY}
    every, models = (*MODELS, "trivial"), {"channels_last": ("cifar10", "resnet20")}
    for module, script, modes in (("torch", "torch_step.py", ("eager", "channels_last", "compile")),
                                  ("tensorflow", "tf_step.py", ("session", "function", "xla")), ("jax", "jax_step.py", ("jit",))):
        for mode in modes:
            env = {**common, **(best[module] if tuned else {})}
            yield Contender(f"{module} {mode}", module, peer(script, mode), models.get(mode, every), env)
    for module, modes in (("torch", ("torch", "torch_cat")), ("tensorflow", ("function", "xla")), ("jax", ("jax",))):
        for mode in modes:
            env = {**common, **(best[module] if tuned else {})}
            yield Contender(f"{module} {mode}", module, [str(python), str(HERE / "peers" / "lstm_step.py"), mode, "{batch}", "{seconds}"], ("lstm",), env)


def version_of(python, module):
    """(version, None), or (None, why it cannot be used)."""
    run = subprocess.run([str(python), "-c", f"import {module}; print({module}.__version__)"], capture_output=True, text=True, check=False)
    if run.returncode == 0:
        return run.stdout.strip().splitlines()[-1], None
    return None, (run.stderr.strip().splitlines() or ["no message"])[-1]


def install(venv, modules):
    """{module: (version, why not)} in the virtual environment `venv`, made and filled as far as the network allows."""
    python, found = venv / "bin" / "python", {}
    if not python.exists():
        print(f"bench: making {venv}", file=sys.stderr)
        run = subprocess.run([sys.executable, "-m", "venv", str(venv)], capture_output=True, text=True, check=False)
        if run.returncode != 0:
            why = "python3 -m venv failed: " + (run.stdout + run.stderr).strip().splitlines()[-1]
            return {m: (None, why) for m in modules}
    for module in modules:
        version, why = version_of(python, module)
        if version is None and "No module named" in why:
            print(f"bench: installing {PACKAGES[module]}; this is done once", file=sys.stderr)
            run = subprocess.run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", PACKAGES[module], "numpy"],
                                 capture_output=True, text=True, check=False)
            version, why = version_of(python, module)
            if version is None and run.returncode != 0:
                why = "pip: " + (run.stderr.strip().splitlines() or ["no message"])[-1]
        found[module] = (version, why)
    return found
