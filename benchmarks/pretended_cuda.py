"""A pretended CUDA device: the package's GPU code paths on a machine without a GPU.

:func:`pretend_cuda` makes torch of a CPU build believe in one CUDA device. Tensors "on" it are a subclass that reports
``device='cuda:0'`` and keeps its numbers in the host's memory, so that every branch on the device is taken as on a GPU
(``x.is_cuda``, ``device.type != "cpu"``, the cast lists of autocast, fused AdamW, checkpoints of CUDA tensors), and
values are real and can be compared with the values of the CPU's path. An operation on tensors of two devices fails as
it does on a GPU. Counted are operations, most of which are one kernel each, and the points where the host waits for a
GPU (``.item()``, ``nonzero``, ``x[mask]``, ``unique``, copies of pageable memory), with the line of the package.

The pretended device does not show kernels that CUDA lacks or computes otherwise, memory, and time. Where a GPU is,
nothing is pretended: the same checks run on it, and torch itself reports the waits.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_flatten, tree_map_only, tree_unflatten

CUDA = torch.device("cuda", 0)
REAL = torch.cuda.is_available()
"""Whether there is a GPU: then nothing is pretended."""

_aten = torch.ops.aten
_KEPT: list[Any] = []  # objects whose addresses torch holds
_CHANGED = (
    f"torch {torch.__version__} {{}}, so no GPU can be pretended; adapt benchmarks/pretended_cuda.py, or run the "
    "checks on a GPU"
)


def allow_cuda_tensors() -> None:
    """Let torch of a CPU build make tensor objects of device cuda and run autograd on them.

    Torch has a device guard for CUDA that does nothing, for fake tensors (``ensureCUDADeviceGuardSet``), but installs
    it only where the guard of a CUDA build sees no device. A guard that counts no devices is put there first. Autograd
    asks the CUDA hooks whether an accelerator was built, and whether its context exists: yes, and no. This must happen
    before the first backward pass of a process, because autograd starts one thread per device then.

    Raises:
        RuntimeError: If torch is built for CUDA and finds no GPU, or this version of torch refuses the trick.
    """
    if REAL or _KEPT:
        return
    if torch.backends.cuda.is_built():
        raise RuntimeError("this torch is built for CUDA and finds no device; the checks need a GPU or a CPU build")
    folder = Path(torch.__file__).parent / "lib"
    c10, library = ctypes.CDLL(str(folder / "libc10.so")), ctypes.CDLL(str(folder / "libtorch_cpu.so"))
    registry = (ctypes.c_void_p * 21).in_dll(c10, "_ZN3c104impl26device_guard_impl_registryE")
    zero = ctypes.cast(ctypes.CDLL(None).sched_yield, ctypes.c_void_p).value  # a function that returns 0
    table = (ctypes.c_void_p * 64)(*[zero] * 64)
    guard = (ctypes.c_void_p * 1)(ctypes.addressof(table))
    registry[1] = ctypes.addressof(guard)
    torch._C._ensureCUDADeviceGuardSet()
    if registry[1] == ctypes.addressof(guard):
        raise RuntimeError(_CHANGED.format("does not replace the device guard of CUDA"))
    find = library._ZN2at6detail12getCUDAHooksEv
    find.restype, find.argtypes = ctypes.c_void_p, []
    hooks = find()
    original = ctypes.c_void_p.from_address(hooks).value
    assert original is not None
    entries = (ctypes.c_void_p * 82).from_buffer_copy((ctypes.c_void_p * 82).from_address(original - 16))
    is_built = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p)(lambda self: True)
    has_context = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_int8)(lambda self, index: False)
    entries[2 + 2] = ctypes.cast(is_built, ctypes.c_void_p).value
    entries[2 + 4] = ctypes.cast(has_context, ctypes.c_void_p).value
    ctypes.c_void_p.from_address(hooks).value = ctypes.addressof(entries) + 16

    def restore() -> None:
        ctypes.c_void_p.from_address(hooks).value = original

    if torch.accelerator.current_accelerator() != torch.device("cuda"):
        restore()
        raise RuntimeError(_CHANGED.format("has other hooks of CUDA"))
    _KEPT.extend((table, guard, entries, is_built, has_context))
    atexit.register(restore)  # the functions above are gone before torch's threads are


# ---------------------------------------------------------------------------------------- the report


@dataclass
class Report:
    """The events on the pretended device.

    Attributes:
        waits: (line of the package, operation) -> how often the host waited there for the device.
        copies: (line of the package, kind) -> how often a tensor of the host was copied to the device.
        blocking: Copies of pageable memory, for which the host waits.
        copied_bytes: Bytes of all copies to the device.
        operations: Operation -> how often it ran; most are one kernel.
    """

    waits: Counter[tuple[str, str]] = field(default_factory=Counter)
    copies: Counter[tuple[str, str]] = field(default_factory=Counter)
    blocking: int = 0
    copied_bytes: int = 0
    operations: Counter[str] = field(default_factory=Counter)

    def clear(self) -> None:
        """Forget all events."""
        self.waits.clear()
        self.copies.clear()
        self.operations.clear()
        self.blocking = self.copied_bytes = 0

    def waited(self, operation: str) -> None:
        """Count a point where the host waits."""
        with _LOCK:
            self.waits[(_line(), operation)] += 1

    def copied(self, kind: str, tensor: Tensor, *, blocking: bool) -> None:
        """Count a copy to the device."""
        with _LOCK:
            self.copies[(_line(), kind)] += 1
            self.blocking += blocking
            self.copied_bytes += tensor.numel() * tensor.element_size()

    def ran(self, operation: str) -> None:
        """Count an operation."""
        with _LOCK:
            self.operations[operation] += 1


_LOCK = threading.Lock()
REPORT = Report()


def _line() -> str:
    """Return the innermost line of the package that is running."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if f"{os.sep}graphbench{os.sep}" in name:
            return f"graphbench{name.rsplit(os.sep + 'graphbench', 1)[1]}:{frame.f_lineno}"
        frame = frame.f_back
    return "backward pass or optimizer"


# ---------------------------------------------------------------------------------------- tensors


class OnCuda(Tensor):
    """A tensor that says it is on a GPU; ``elem`` holds its numbers."""

    elem: Tensor

    @staticmethod
    def __new__(cls, elem: Tensor) -> OnCuda:
        made = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, elem.size(), strides=elem.stride(), storage_offset=elem.storage_offset(), dtype=elem.dtype,
            layout=elem.layout, device=CUDA, requires_grad=False,
        )  # fmt: skip
        made.elem = elem
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _dispatch(func, args, kwargs or {})

    def __repr__(self, **_: Any) -> str:
        return f"OnCuda({self.elem!r})"

    def tolist(self) -> Any:
        return self.cpu().tolist()

    def __tensor_flatten__(self) -> tuple[list[str], None]:  # with it modules swap their parameters for such tensors
        return ["elem"], None

    @staticmethod
    def __tensor_unflatten__(inner: dict[str, Tensor], context: Any, size: Any, stride: Any) -> OnCuda:
        return OnCuda(inner["elem"])


class PretendMode(TorchDispatchMode):
    """Catches operations that make tensors on the GPU from no tensors."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _dispatch(func, args, kwargs or {})


_ALWAYS_WAIT = {
    "aten::nonzero", "aten::masked_select", "aten::_unique2", "aten::unique_dim", "aten::unique_consecutive",
    "aten::bincount", "aten::_linalg_eigh", "aten::equal", "aten::is_nonzero", "aten::histc",
}  # fmt: skip
_MASKS = (torch.bool, torch.uint8)
_NOT_TAKEN_APART = {"aten::_fused_sdp_choice"}
_MAY_MIX = {"aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_"}
_VIEWS = {"aten::detach", "aten::alias", "aten::view", "aten::_unsafe_view", "aten::t", "aten::transpose",
          "aten::permute", "aten::expand", "aten::select", "aten::slice", "aten::unsqueeze", "aten::squeeze",
          "aten::split", "aten::split_with_sizes", "aten::unbind", "aten::as_strided", "aten::diagonal",
          "aten::lift_fresh", "aten::_reshape_alias", "aten::empty", "aten::empty_strided", "aten::empty_like",
          "aten::new_empty", "aten::new_empty_strided", "aten::_local_scalar_dense", "aten::is_pinned",
          "aten::view_as", "aten::narrow", "aten::unfold"}  # fmt: skip


def _dispatch(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Run an operation of torch on the numbers in the host's memory, and count it if it would run on the device."""
    flat, spec = tree_flatten((args, kwargs))
    ours = [x for x in flat if isinstance(x, OnCuda)]
    others = [x for x in flat if isinstance(x, Tensor) and not isinstance(x, OnCuda)]
    name = func._schema.name
    wanted = kwargs.get("device")
    to_cuda = wanted is not None and torch.device(wanted).type == "cuda"
    if not ours and not to_cuda:
        if name == "aten::_pin_memory":
            if any(n > 1 and step == 0 for n, step in zip(args[0].shape, args[0].stride(), strict=True)):
                raise RuntimeError("unsupported operation: pinned memory for a tensor that repeats its numbers")
            return args[0].clone()
        if name == "aten::is_pinned":
            return False
        return func(*args, **kwargs)
    if name not in _NOT_TAKEN_APART and func._can_decompose():  # inference mode gives operations made of others
        with PretendMode():
            return func.decompose(*args, **kwargs)
    if name == "aten::_to_copy":
        return _to_copy(args[0], kwargs)
    if name in ("aten::copy_", "aten::copy"):
        return _copy(func, args, kwargs)
    if name == "aten::_local_scalar_dense":
        REPORT.waited("item")
        return func(args[0].elem)
    if name == "aten::_fused_sdp_choice":
        return 0  # the formula in single operations: kernels with a name of CUDA's have no form on the CPU
    if name == "aten::_pack_padded_sequence":
        data, sizes = func(args[0].elem, args[1], *args[2:])
        return OnCuda(data), sizes
    if name == "aten::_thnn_fused_lstm_cell":
        return _lstm_cell(*args)
    if name == "aten::_thnn_fused_lstm_cell_backward_impl":
        return _lstm_cell_backward(*args)
    if name == "aten::is_pinned":
        return False
    if name in _ALWAYS_WAIT:
        REPORT.waited(name.split("::")[1])
    if name == "aten::repeat_interleave" and kwargs.get("output_size") is None:
        REPORT.waited("repeat_interleave without output_size")
    if name in _MAY_MIX and any(isinstance(i, Tensor) and i.dtype in _MASKS for i in tree_flatten(args[1])[0]):
        REPORT.waited("index with a mask")
    if others:
        if name in _MAY_MIX:
            for other in others:
                REPORT.copied("index on the CPU", other, blocking=True)
        elif not (torch.Tag.pointwise in func.tags and all(o.dim() == 0 for o in others)) and name != "aten::fill_":
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but {name} got cuda:0 and cpu "
                f"(shapes {[tuple(t.shape) for t in ours]} and {[tuple(t.shape) for t in others]})"
            )
    if name not in _VIEWS:
        REPORT.ran(name)
    plain_args, plain_kwargs = tree_unflatten([x.elem if isinstance(x, OnCuda) else x for x in flat], spec)
    on_cpu = wanted is not None and not to_cuda
    if to_cuda:
        plain_kwargs["device"] = torch.device("cpu")
    plain_kwargs.pop("pin_memory", None)
    out = func(*plain_args, **plain_kwargs)
    if on_cpu:
        return out
    wrapped = tree_map_only(Tensor, OnCuda, out)
    if not ours:
        return wrapped
    return return_and_correct_aliasing(func, args, kwargs, wrapped)


def _to_copy(tensor: Tensor, kwargs: dict[str, Any]) -> Tensor:
    device = kwargs.get("device")
    target = tensor.device if device is None else torch.device(device)
    kept = {key: value for key, value in kwargs.items() if key not in ("device", "non_blocking", "pin_memory")}
    elem = tensor.elem if isinstance(tensor, OnCuda) else tensor
    made: Tensor = _aten._to_copy.default(elem, **kept)
    if target.type == "cuda":
        if not isinstance(tensor, OnCuda):
            blocking = not kwargs.get("non_blocking")
            REPORT.copied("pageable memory" if blocking else "asynchronous", elem, blocking=blocking)
        else:
            REPORT.ran("aten::_to_copy")
        return OnCuda(made)
    if isinstance(tensor, OnCuda):
        REPORT.waited("copy to the CPU")
    return made


def _copy(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    target, source = args[0], args[1]
    if isinstance(target, OnCuda) and not isinstance(source, OnCuda):
        REPORT.copied("copy_" if source.dim() else "fill", source, blocking=source.dim() > 0)
    elif isinstance(source, OnCuda) and not isinstance(target, OnCuda):
        REPORT.waited("copy_ to the CPU")
    else:
        REPORT.ran("aten::copy_")
    plain = [x.elem if isinstance(x, OnCuda) else x for x in args]
    out = func(*plain, **kwargs)
    if func._schema.name == "aten::copy_":
        return target
    return OnCuda(out) if isinstance(target, OnCuda) else out


def _lstm_cell(inputs: Any, hidden: Any, cell: Any, first: Any = None, second: Any = None) -> Any:
    """Return the results of CUDA's fused LSTM cell (cuDNN would do all steps in one kernel)."""
    REPORT.ran("aten::_thnn_fused_lstm_cell")
    total = inputs.elem + hidden.elem
    for bias in (first, second):
        total = total if bias is None else total + bias.elem
    enter, keep, new, leave = total.chunk(4, 1)
    enter, keep, leave, new = enter.sigmoid(), keep.sigmoid(), leave.sigmoid(), new.tanh()
    after = keep * cell.elem + enter * new
    workspace = torch.cat([enter, keep, new, leave], 1)
    return OnCuda(leave * after.tanh()), OnCuda(after), OnCuda(workspace)


def _lstm_cell_backward(of_state: Any, of_cell: Any, before: Any, after: Any, workspace: Any, has_bias: bool) -> Any:
    REPORT.ran("aten::_thnn_fused_lstm_cell_backward_impl")
    enter, keep, new, leave = workspace.elem.chunk(4, 1)
    squashed = after.elem.tanh()
    into_cell = torch.zeros_like(squashed) if of_cell is None else of_cell.elem
    if of_state is not None:
        into_cell = into_cell + of_state.elem * leave * (1 - squashed**2)
    of_leave = torch.zeros_like(leave) if of_state is None else of_state.elem * squashed
    parts = [into_cell * new * enter * (1 - enter), into_cell * before.elem * keep * (1 - keep),
             into_cell * enter * (1 - new**2), of_leave * leave * (1 - leave)]  # fmt: skip
    gates = torch.cat(parts, 1)
    return OnCuda(gates), OnCuda(into_cell * keep), OnCuda(gates.sum(0)) if has_bias else None


def _without_gradients(self: Any) -> None:
    self.no_grad = torch.no_grad()
    self.no_grad.__enter__()


def _as_before(self: Any, *error: Any) -> None:
    self.no_grad.__exit__(*error)


@contextlib.contextmanager
def pretend_cuda() -> Iterator[Report]:
    """Within the block there is one CUDA device; yield the report of the events on it."""
    if REAL:
        REPORT.clear()
        yield REPORT
        torch.cuda.synchronize()
        return
    allow_cuda_tensors()
    generator = torch.default_generator
    patches: dict[str, Any] = {
        "torch.cuda._lazy_init": lambda: None,
        "torch.cuda.is_available": lambda: True,
        "torch.cuda.device_count": lambda: 1,
        "torch.cuda.set_device": lambda device: None,
        "torch.cuda.current_device": lambda: 0,
        "torch.cuda.default_generators": (generator,),
        "torch.cuda.get_rng_state": lambda device="cuda": generator.get_state(),
        "torch.cuda.set_rng_state": lambda state, device="cuda": generator.set_state(state),
        "torch.cuda.is_bf16_supported": lambda including_emulation=True: True,
        "torch.cuda.max_memory_allocated": lambda device=None: 0,
        "torch.cuda.reset_peak_memory_stats": lambda device=None: None,
        "torch.cuda.get_device_properties": lambda device=None: SimpleNamespace(uuid="pretended"),
        "torch.cuda.empty_cache": lambda: None,
        "torch.cuda.synchronize": lambda device=None: None,
        "torch.cuda.get_device_name": lambda device=None: "a pretended GPU",
        "torch.cuda.is_current_stream_capturing": lambda: False,
        "torch.cuda.manual_seed_all": lambda seed: None,
        "torch.cuda.amp.common.amp_definitely_not_available": lambda: False,
    }
    with contextlib.ExitStack() as stack:
        for name, value in patches.items():
            stack.enter_context(mock.patch(name, value))
        # the tensors of inference mode take no subclass
        for name, method in (("__enter__", _without_gradients), ("__exit__", _as_before)):
            stack.enter_context(mock.patch.object(torch.inference_mode, name, method))
        before = torch._C._only_lift_cpu_tensors()
        torch._C._set_only_lift_cpu_tensors(True)  # torch.tensor(..., device="cuda") is a copy from the CPU
        stack.callback(torch._C._set_only_lift_cpu_tensors, before)
        stack.enter_context(PretendMode())
        REPORT.clear()
        yield REPORT


@contextlib.contextmanager
def waits_of_a_gpu(report: Report) -> Iterator[None]:
    """On a real GPU, count the points where the host waits for it, as far as torch warns of them."""
    if not REAL:
        yield
        return
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        for warning in caught:
            if "synchronizing" in str(warning.message):
                path = warning.filename.rsplit(f"{os.sep}graphbench{os.sep}", 1)[-1]
                report.waits[(f"graphbench/{path}:{warning.lineno}", "waits")] += 1
    finally:
        torch.cuda.set_sync_debug_mode("default")
