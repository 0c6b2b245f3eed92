"""Single instructions that numba has no name for."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_BYTES = ir.IntType(8).as_pointer()
_INT32 = ir.IntType(32)


@intrinsic
def prefetch(typing: Any, array: Any, position: Any) -> Any:
    """Ask for the cache line that holds the array's element at a flat position.

    The position may lie outside the array: it is a hint, and wrong hints are ignored.
    """

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        start = context.make_array(signature.args[0])(context, builder, args[0]).data
        address = builder.bitcast(builder.gep(start, [args[1]]), _BYTES)
        read, keep, data = _INT32(0), _INT32(3), _INT32(1)
        form = ir.FunctionType(ir.VoidType(), [_BYTES, _INT32, _INT32, _INT32])
        builder.call(builder.module.declare_intrinsic("llvm.prefetch", (_BYTES,), form), [address, read, keep, data])
        return context.get_dummy_value()

    return types.void(array, types.intp), emit
