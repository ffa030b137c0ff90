"""How a figure grows with a size, in words. Points are (size, value) pairs."""
import math

from .chart import number, unit


def sentence(column, points):
    """From the first size to the last: the value, by how much, and what kind of growth that is."""
    points = [(size, value) for size, value in points if value is not None]
    if len(points) < 2:
        return f"{unit(column)}: not measured"
    first, last = points[0][1], points[-1][1]
    said = f"{unit(column)}: {number(first)} → {number(last)}"
    steps = exponent(points)
    if steps is None:
        return said
    return f"{said} (× {number(last / first)}, {kind(steps)}: exponent {steps:.2f})"


def exponent(points):
    """0: flat, 1: in proportion to the size, by least squares over the logarithms; None if there are too few above 0."""
    logs = [(math.log(size), math.log(value)) for size, value in points if size > 0 and value is not None and value > 0]
    if len(logs) < 2 or len(logs) < len(points):
        return None
    x_mean = sum(x for x, _ in logs) / len(logs)
    y_mean = sum(y for _, y in logs) / len(logs)
    spread = sum((x - x_mean) ** 2 for x, _ in logs)
    return sum((x - x_mean) * (y - y_mean) for x, y in logs) / spread if spread else None


def kind(steps):
    if steps < -0.1:
        return "falls"
    if steps <= 0.1:
        return "flat"
    if steps < 0.9:
        return "less than in proportion"
    return "in proportion" if steps <= 1.1 else "more than in proportion"
