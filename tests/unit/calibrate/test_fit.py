"""The model of a kernel's cost, on measurements whose law is known."""

import random

import pytest

from stages.calibrate.fit import Measurement, fit


def layers(law: dict[str, float], count: int, noise: float = 0.0) -> list[Measurement]:
    """Layers of all sizes that cost what `law` says, give or take `noise`."""
    draw = random.Random(1)
    made = []
    for _ in range(count):
        outputs = draw.choice((10, 100, 1000, 10000)) * draw.randint(1, 9)
        known = {"products": outputs * draw.choice((9, 64, 500)), "outputs": outputs, "inputs": draw.randint(10, 9999)}
        known = {name: float(value) for name, value in known.items()} | {"call": 1.0}
        cost = sum(law[name] * known[name] for name in law) * (1 + draw.uniform(-noise, noise))
        made.append(Measurement(round(cost), {**known, "estimate": 3 * known["products"]}))
    return made


def test_a_law_of_two_quantities_is_found() -> None:
    made = fit(layers({"products": 0.5, "outputs": 20.0}, 30))
    assert made is not None
    assert made.factors["outputs"] == pytest.approx(20, rel=1e-2)
    # The estimate is three products here: either of them describes the same law.
    products = made.factors.get("products", 0) + 3 * made.factors.get("estimate", 0)
    assert products == pytest.approx(0.5, rel=1e-2)
    assert made.error < 0.01


def test_small_layers_count_as_much_as_large_ones() -> None:
    made = fit(layers({"products": 1.0, "call": 500.0}, 40))
    assert made is not None
    assert made.factors["call"] == pytest.approx(500, rel=0.05)


def test_factors_are_positive_and_few_where_measurements_are_noisy() -> None:
    made = fit(layers({"products": 1.0}, 40, noise=0.2))
    assert made is not None
    assert all(value > 0 for value in made.factors.values())
    assert len(made.factors) <= 4
    assert 0.01 < made.error < 0.2


def test_few_measurements_only_scale_the_kernels_own_estimate() -> None:
    made = fit(
        [Measurement(200, {"estimate": 100.0, "outputs": 7.0}), Measurement(20, {"estimate": 10.0, "outputs": 9.0})]
    )
    assert made is not None
    assert (made.factors, made.layers) == ({"estimate": 2.0}, 2)


def test_a_kernel_without_an_estimate_is_fitted_to_what_is_known() -> None:
    made = fit([Measurement(30 * outputs, {"outputs": float(outputs), "products": 0.0}) for outputs in (3, 50, 700)])
    assert made is not None
    assert made.factors == {"outputs": 30.0}


def test_nothing_measured_is_no_model() -> None:
    assert fit([]) is None


def test_the_order_of_measurements_does_not_matter_where_two_quantities_tell_the_same() -> None:
    found = set()
    for seed in range(10):
        sizes = random.Random(seed).sample((1024, 175, 8192, 4096, 432, 384, 7840, 1000), 8)
        known = [{"inputs": 2.0 * size, "estimate": 55.0 * size, "call": 1.0} for size in sizes]
        made = fit([Measurement(123 + 75 * size, each) for size, each in zip(sizes, known, strict=True)])
        assert made is not None
        found.add(tuple(sorted(made.factors.items())))
    assert len(found) == 1
