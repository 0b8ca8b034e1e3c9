#!/usr/bin/env python3
"""Prints the polynomials of ops/elementwise/vector_*.h: minimax fits by the exchange algorithm of Remez.

Needs mpmath. Each line is: name, largest weighted error with the coefficients as they are printed, coefficients from the
constant term upwards. Other grids of points give other last digits with the same errors.
"""

from mpmath import atan, binomial, cos, erf, erfc, exp, factorial, log, lu_solve, matrix, mp, mpf, pi
from mpmath import polyval, sqrt

mp.dps = 45  # digits: the systems of equations lose many


def value(coefficients, x):
    return polyval(coefficients[::-1], x)


def remez(function, weight, low, high, degree, rounds=12):
    """The polynomial that minimises the largest weight(x) * |function(x) - p(x)| on [low, high]: its coefficients, and
    a function that gives this error of any."""
    unknowns = degree + 2
    points = 40 * unknowns
    low, high = mpf(low), mpf(high)
    grid = [(low + high) / 2 - (high - low) / 2 * cos(pi * i / points) for i in range(points + 1)]
    values = [function(x) for x in grid]
    weights = [weight(x) for x in grid]

    def errors(coefficients):
        return [w * (v - value(coefficients, x)) for w, v, x in zip(weights, values, grid)]

    chosen = [round(i * points / (unknowns - 1)) for i in range(unknowns)]
    for _ in range(rounds):
        # p(x_i) + (-1)^i e / weight(x_i) = function(x_i): the error alternates with one size e.
        rows = [[grid[k] ** j for j in range(degree + 1)] + [(-1) ** i / weights[k]] for i, k in enumerate(chosen)]
        solution = list(lu_solve(matrix(rows), matrix([values[k] for k in chosen])))
        coefficients = solution[:-1]
        error = errors(coefficients)
        # The extreme point of each stretch of one sign; of too many, the smaller end ones go.
        stretches = [[0]]
        for k in range(1, len(grid)):
            if (error[k] > 0) == (error[k - 1] > 0):
                stretches[-1].append(k)
            else:
                stretches.append([k])
        extremes = [max(stretch, key=lambda k: abs(error[k])) for stretch in stretches]
        if len(extremes) < unknowns or max(map(abs, error)) < 1.01 * abs(solution[-1]):
            break
        while len(extremes) > unknowns:
            extremes.pop(0 if abs(error[extremes[0]]) < abs(error[extremes[-1]]) else -1)
        chosen = extremes
    return coefficients, lambda any_coefficients: max(map(abs, errors(any_coefficients)))


def show(name, fit, digits=9, suffix="f"):
    coefficients, error_of = fit
    printed = [f"{float(c):.{digits}e}" for c in coefficients]
    error = float(error_of([mpf(text) for text in printed]))
    print(f"{name}: {error:.1e}: " + ", ".join(text + suffix for text in printed), flush=True)


def show_double(name, fit):
    show(name, fit, 17, "")


def exponential_rest(r):
    """(e^r - 1 - r) / r^2."""
    return sum(r**k / factorial(k + 2) for k in range(24))


def logarithm_rest(z):
    """log((1 + s) / (1 - s)) = 2 s + s z R(z) with z = s^2."""
    return sum(mpf(2) / (2 * k + 3) * z**k for k in range(40))


def second_logarithm_rest(z):
    """log((1 + s) / (1 - s)) = 2/3 s (3 + z + z^2 P(z)) with z = s^2."""
    return sum(mpf(3) / (2 * k + 5) * z**k for k in range(40))


def erf_over_x(z):
    """erf(x) / x with z = x^2 <= 1."""
    return 2 / sqrt(pi) * sum((-z) ** k / (factorial(k) * (2 * k + 1)) for k in range(60))


def upper_tail(a):
    """e^(a^2/2) times the probability that a standard normal variable is above a >= 0."""
    return exp(a * a / 2) * erfc(a / sqrt(2)) / 2


def upper_tail_over_u(u):
    """upper_tail(a) / u with u = 1 / (1 + 0.345 a)."""
    return upper_tail((1 / u - 1) / 0.345) / u


def sine_rest(z):
    """(sin(r) - r) / r^3 with z = r^2."""
    return sum((-1) ** (k + 1) * z**k / factorial(2 * k + 3) for k in range(24))


def cosine_rest(z):
    """(cos(r) - 1 + r^2 / 2) / r^4 with z = r^2."""
    return sum((-z) ** k / factorial(2 * k + 4) for k in range(24))


def tangent_series():
    """Coefficients of (tan(r) - r) / r^3 in z = r^2."""
    # The derivative of tan is 1 + tan^2, which gives each coefficient from those before it.
    series = [mpf(1)]
    for k in range(1, 60):
        series.append(sum(series[i] * series[k - 1 - i] for i in range(k)) / (2 * k + 1))
    return series[1:]


def arc_sine_rest(z):
    """(asin(x) - x) / x^3 with z = x^2 <= 1/4."""
    return sum(binomial(2 * k, k) / (mpf(4) ** k * (2 * k + 1)) * z ** (k - 1) for k in range(1, 90))


def arc_tangent_rest(z):
    """(atan(t) - t) / t^3 with z = t^2."""
    return (atan(sqrt(z)) - sqrt(z)) / z ** mpf(1.5) if z > 1e-8 else mpf(-1) / 3


def hyperbolic_sine_rest(z):
    """(sinh(x) - x) / x^3 with z = x^2."""
    return sum(z**k / factorial(2 * k + 3) for k in range(24))


if __name__ == "__main__":
    # Ranges are a little wider than needed, as the reduction rounds. Weights make the errors relative.
    half_ln2 = log(2) / 2 * 1.001
    largest_z = ((sqrt(2) - 1) / (sqrt(2) + 1)) ** 2 * 1.001
    largest_square = (pi / 4) ** 2 * 1.001
    tangent = tangent_series()
    show("expm1_reduced", remez(exponential_rest, lambda r: abs(r) + 1e-9, -half_ln2, half_ln2, 5))
    show_double("expm1_reduced", remez(exponential_rest, lambda r: abs(r) + 1e-9, -half_ln2, half_ln2, 9))
    show("logarithm_rest", remez(logarithm_rest, lambda z: z / 2 + 1e-12, 1e-12, largest_z, 2))
    show("log1p_below_1", remez(logarithm_rest, lambda z: z / 2 + 1e-12, 1e-12, mpf(1) / 9 * 1.0001, 3))
    show_double("erf below 1", remez(erf_over_x, lambda z: 1 / erf_over_x(z), 0, 1, 11))
    # From where the probability is no float.
    show("upper tail", remez(upper_tail_over_u, lambda u: 1 / upper_tail_over_u(u), 1 / (1 + 0.345 * 14.5), 1, 8))
    show("coarse_exp2", remez(lambda r: mpf(2) ** r, lambda r: mpf(2) ** -r, -0.5, 0.5, 3))
    coarse_tail = lambda u: upper_tail((1 / u - 1) / 0.4) / u
    show("coarse upper tail", remez(coarse_tail, lambda u: 1 / coarse_tail(u), 1 / (1 + 0.4 * 14.5), 1, 4))
    show(
        "-log(1 - erf(a)) / a - 1",
        remez(lambda a: -log(erfc(a)) / a - 1, lambda a: erfc(a) * a / erf(a), 1e-30, 3.95, 8),
    )
    show_double(
        "-log(1 - erf) above 1",
        remez(lambda a: -log(erfc(a)), lambda a: erfc(a) / erf(a), 1, 6, 18),
    )
    show("sin_near_0", remez(sine_rest, lambda z: z / 0.9 + 1e-12, 0, largest_square, 2))
    show("cos_near_0", remez(cosine_rest, lambda z: z * z / 0.7 + 1e-12, 1e-6, largest_square, 2))
    show("tan_reduced", remez(lambda z: value(tangent, z), lambda z: z + 1e-12, 0, largest_square, 6))
    show("asin up to 1/2", remez(arc_sine_rest, lambda z: z + 1e-12, 0, 0.25, 4))
    show_double("asin up to 1/2", remez(arc_sine_rest, lambda z: z + 1e-12, 0, 0.25, 11))
    show("atan up to 1", remez(arc_tangent_rest, lambda z: z + 1e-12, 0, 1, 8))
    show("sinh below 1", remez(hyperbolic_sine_rest, lambda z: z + 1e-12, 0, 1, 3))
    # For pow, in double.
    show_double(
        "log2 of (1 + s) / (1 - s)",
        remez(lambda z: (2 + z * logarithm_rest(z)) / log(2), lambda z: 0.34, 0, largest_z, 4),
    )
    show_double("exp2", remez(lambda r: mpf(2) ** r, lambda r: 1 / mpf(2) ** r, -0.501, 0.501, 6))
    show_double("long_log2", remez(second_logarithm_rest, lambda z: z * z / 3 + 1e-20, 1e-9, largest_z, 6))
