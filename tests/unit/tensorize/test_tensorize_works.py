"""The pin of apache-tvm-ffi: with another version `Schedule.tensorize` ends the process with a segmentation fault."""

import subprocess
import sys
from importlib.metadata import version

from tests.support.emitted import ROOT

PROGRAM = """
from tvm import s_tir
from tvm.s_tir import TensorIntrin
from tests.support.kernels.mini import mini_functions
workload, desc, impl = mini_functions(8, 12, 6, 4)
TensorIntrin.register("pin", desc, impl)
schedule = s_tir.Schedule(workload)
schedule.tensorize(schedule.get_sblock("tile"), "pin")
print("mini_gemm" in schedule.mod.script())
"""


def test_schedule_tensorize_works_with_the_installed_tvm_and_ffi() -> None:
    # In a process of its own: a segmentation fault would take the whole test run with it.
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=False)
    versions = f"apache-tvm {version('apache-tvm')}, apache-tvm-ffi {version('apache-tvm-ffi')}"
    assert done.returncode == 0, f"{versions}: exit status {done.returncode}\n{done.stderr[-500:]}"
    assert done.stdout.strip() == "True"
