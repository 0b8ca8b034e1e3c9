#!/usr/bin/env python3
"""Prints the polynomials of ops/elementwise/vector_*.h: minimax fits by the exchange algorithm of Remez.

Needs numpy. Each line is: name, largest weighted error, coefficients from the constant term upwards.
"""

import math

import numpy as np
from numpy.polynomial import polynomial


def remez(function, weight, low, high, degree, rounds=40):
    """The polynomial that minimises the largest weight(x) * |function(x) - p(x)| on [low, high], and that error."""
    unknowns = degree + 2

    def chebyshev(n):
        return (low + high) / 2 - (high - low) / 2 * np.cos(np.pi * np.arange(n) / (n - 1))

    grid = chebyshev(20001)
    values = np.array([function(x) for x in grid])
    weights = np.array([weight(x) for x in grid])
    points = chebyshev(unknowns)
    for _ in range(rounds):
        # p(x_i) + (-1)^i e / weight(x_i) = function(x_i): the error alternates with one size e.
        matrix = np.vander(points, unknowns, increasing=True)
        matrix[:, -1] = [(-1) ** i / weight(x) for i, x in enumerate(points)]
        solution = np.linalg.solve(matrix, [function(x) for x in points])
        coefficients = solution[:-1]
        error = weights * (values - polynomial.polyval(grid, coefficients))
        # The extreme point of each stretch of one sign; of too many, the smaller end ones go.
        starts = np.flatnonzero(np.diff(np.sign(error))) + 1
        extremes = [s[np.argmax(abs(error[s]))] for s in np.split(np.arange(len(grid)), starts)]
        if len(extremes) < unknowns or max(abs(error)) < 1.001 * abs(solution[-1]):
            break
        while len(extremes) > unknowns:
            extremes.pop(0 if abs(error[extremes[0]]) < abs(error[extremes[-1]]) else -1)
        points = grid[extremes]
    return coefficients, max(abs(error))


def show(name, fit, digits=9, suffix="f"):
    coefficients, error = fit
    print(f"{name}: {error:.1e}: " + ", ".join(f"{c:.{digits}e}{suffix}" for c in coefficients))


def exponential_rest(r):
    """(e^r - 1 - r) / r^2."""
    return sum(r**k / math.factorial(k + 2) for k in range(14))


def logarithm_rest(z):
    """log((1 + s) / (1 - s)) = 2 s + s z R(z) with z = s^2."""
    return sum(2 / (2 * k + 3) * z**k for k in range(24))


def erf_over_x(z):
    """erf(x) / x with z = x^2 <= 1."""
    return 2 / math.sqrt(math.pi) * sum((-z) ** k / (math.factorial(k) * (2 * k + 1)) for k in range(40))


def sine_rest(z):
    """(sin(r) - r) / r^3 with z = r^2."""
    return sum((-1) ** (k + 1) * z**k / math.factorial(2 * k + 3) for k in range(14))


def cosine_rest(z):
    """(cos(r) - 1 + r^2 / 2) / r^4 with z = r^2."""
    return sum((-z) ** k / math.factorial(2 * k + 4) for k in range(14))


def tangent_rest(z):
    """(tan(r) - r) / r^3 with z = r^2."""
    # The derivative of tan is 1 + tan^2, which gives each coefficient from those before it.
    series = [1.0]
    for k in range(1, 40):
        series.append(sum(series[i] * series[k - 1 - i] for i in range(k)) / (2 * k + 1))
    return sum(c * z**k for k, c in enumerate(series[1:]))


def arc_sine_rest(z):
    """(asin(x) - x) / x^3 with z = x^2 <= 1/4."""
    return sum(math.comb(2 * k, k) / (4**k * (2 * k + 1)) * z ** (k - 1) for k in range(1, 40))


def arc_tangent_rest(z):
    """(atan(t) - t) / t^3 with z = t^2."""
    if z < 0.1:
        return sum((-1) ** (k + 1) * z**k / (2 * k + 3) for k in range(20))
    return (math.atan(math.sqrt(z)) - math.sqrt(z)) / z**1.5


def hyperbolic_sine_rest(z):
    """(sinh(x) - x) / x^3 with z = x^2."""
    return sum(z**k / math.factorial(2 * k + 3) for k in range(14))


if __name__ == "__main__":
    # Ranges are a little wider than needed, as the reduction rounds. Weights make the errors relative.
    half_ln2 = math.log(2) / 2 * 1.001
    largest_z = ((math.sqrt(2) - 1) / (math.sqrt(2) + 1)) ** 2 * 1.001
    show("expm1_reduced", remez(exponential_rest, lambda r: abs(r) + 1e-9, -half_ln2, half_ln2, 5))
    show("log_terms", remez(logarithm_rest, lambda z: z / 2 + 1e-12, 1e-12, largest_z, 2))
    show("erf below 1", remez(erf_over_x, lambda z: 1 / erf_over_x(z), 0, 1, 6))
    show(
        "-log(1 - erf) above 1",
        remez(lambda x: -math.log(math.erfc(x)), lambda x: math.erfc(x) / math.erf(x), 1, 3.95, 6),
    )
    largest_square = (math.pi / 4) ** 2 * 1.001
    show("sin_reduced", remez(sine_rest, lambda z: z / 0.9 + 1e-12, 0, largest_square, 2))
    show("cos_reduced", remez(cosine_rest, lambda z: z * z / 0.7 + 1e-12, 1e-6, largest_square, 2))
    show("tan_reduced", remez(tangent_rest, lambda z: z + 1e-12, 0, largest_square, 6))
    show("asin up to 1/2", remez(arc_sine_rest, lambda z: z + 1e-12, 0, 0.25, 4))
    show("atan up to 1", remez(arc_tangent_rest, lambda z: z + 1e-12, 0, 1, 8))
    show("sinh below 1", remez(hyperbolic_sine_rest, lambda z: z + 1e-12, 0, 1, 3))
    # For pow, in double.
    show(
        "log2 of (1 + s) / (1 - s)",
        remez(lambda z: (2 + z * logarithm_rest(z)) / math.log(2), lambda z: 0.34, 0, largest_z, 4),
        17,
        "",
    )
    show("exp2", remez(lambda r: 2**r, lambda r: 1 / 2**r, -0.501, 0.501, 6), 17, "")
