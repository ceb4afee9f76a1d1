"""From TVM's printed file to bodies: parameters, scalars for arrays, dead stores, literals."""

import pytest

from stages.codegen.c_text import split_functions, tidy

SOURCE = """// tvm target: c
#include "tvm/runtime/base.h"
TVM_DLL void layer(int8_t* x, int32_t* y, float s);
#ifdef __cplusplus
extern "C"
#endif
TVM_DLL int32_t helper(void*, int32_t);
TVM_DLL void layer(int8_t* x, int32_t* y, float s) {
  for (int32_t i = 0; i < 8; ++i) {
    if ((i < 3)) {
      y[i] = ((int32_t)((x[i] * 2) * s));
    } else {
      helper((&(y[0])), i);
    }
  }
}
"""


def test_functions_are_found_by_name_with_their_parameters() -> None:
    found = split_functions(SOURCE, {"layer": ["0.1f"]})
    assert set(found) == {"layer"}
    names, body = found["layer"]
    assert names == ("x", "y")
    assert body == (
        "    for (int32_t i = 0; i < 8; ++i) {\n"
        "        if (i < 3) {\n"
        "            y[i] = (int32_t)(x[i] * 2 * 0.1f);\n"
        "        } else {\n"
        "            helper(y, i);\n"
        "        }\n"
        "    }\n"
    )


def test_an_array_of_one_becomes_a_variable() -> None:
    assert tidy("  int32_t acc_ptr[1];\n  acc_ptr[0] = 3;\n  y[0] = acc_ptr[0];\n") == (
        "    int32_t acc;\n    acc = 3;\n    y[0] = acc;\n"
    )


def test_an_array_with_constant_indices_becomes_variables() -> None:
    body = "  int32_t sum_ptr[4];\n  sum_ptr[0] = 3;\n  sum_ptr[2] = 4;\n  y[0] = (sum_ptr[0] + sum_ptr[2]);\n"
    assert tidy(body) == ("    int32_t sum_0, sum_2;\n    sum_0 = 3;\n    sum_2 = 4;\n    y[0] = sum_0 + sum_2;\n")


def test_a_variable_does_not_take_a_name_that_is_in_use() -> None:
    body = "  int32_t acc_ptr[1];\n  int32_t acc = 5;\n  acc_ptr[0] = acc;\n  y[0] = acc_ptr[0];\n"
    assert "acc_ptr = acc;" in tidy(body)


def test_temporaries_get_plain_names() -> None:
    body = "  int32_t v_ = x;\n  int32_t v__1 = (v_) < (9) ? (v_) : (9);\n  y[0] = v__1;\n"
    assert tidy(body) == "    int32_t v = x;\n    int32_t v1 = v < 9 ? v : 9;\n    y[0] = v1;\n"
    assert "v_ = v1;" in tidy("  int32_t v_ = v1;\n")


def test_a_value_nobody_reads_is_not_stored() -> None:
    body = "  int32_t first_ptr[2];\n  first_ptr[0] = (t * 4);\n  first_ptr[1] = 1;\n  f(first_ptr[0]);\n"
    assert tidy(body) == "    int32_t first;\n    first = t * 4;\n    f(first);\n".replace("first", "first_0")


def test_a_call_stays_even_when_its_value_is_not_read() -> None:
    assert "done = f(3);" in tidy("  int32_t done_ptr[1];\n  done_ptr[0] = f(3);\n")


def test_an_array_that_would_be_on_the_stack_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="rows_ptr would be on the stack"):
        tidy("  int8_t rows_ptr[64];\n  rows_ptr[i] = 3;\n")
