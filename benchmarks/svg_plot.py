"""Curves as an SVG file, for the plots of the documents."""
import math


def plot(file, title, labels, curves, points=(), linear=False):
    """Curves {name: [(x, y)]} over logarithmic x, and named points, as SVG; `linear`: over
    linear x, and y from where the curves are."""
    width, height, left, top = 640, 340, 70, 40
    every = [point for curve in curves.values() for point in curve] + [p[:2] for p in points]
    scaled = float if linear else math.log10
    x_low, x_high = (scaled(f(x for x, _ in every)) for f in (min, max))
    highest = max(y for _, y in every)
    lowest = min(y for _, y in every) if linear else 0
    unit = 10 ** math.floor(math.log10((highest - lowest) / 4))
    step = next(unit * k for k in (1, 2, 2.5, 5, 10, 20)
                if lowest // (unit * k) * unit * k + unit * k * 4 >= highest * 0.999)
    y_low = lowest // step * step
    y_high = y_low + 4 * step

    def place(x, y):
        across = (scaled(x) - x_low) / (x_high - x_low)
        up = (y - y_low) / (y_high - y_low)
        return left + across * (width - left - 150), height - 50 - up * (height - 50 - top)

    colours = ("#1b6ca8", "#c2571a", "#3a7d44", "#7a4fa3", "#8a1c3b", "#555555")
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
           'font-family="sans-serif" font-size="11">',
           f'<rect width="{width}" height="{height}" fill="white"/>',
           f'<text x="{left}" y="20" font-size="13">{title}</text>']
    for tick in range(5):
        value = y_low + step * tick
        x, y = place(min(x for x, _ in every), value)
        out.append(f'<line x1="{x}" y1="{y:.1f}" x2="{width - 150}" y2="{y:.1f}" stroke="#ddd"/>'
                   f'<text x="{x - 6}" y="{y + 4:.1f}" text-anchor="end">{value:,.3g}</text>')
    values = sorted({x for x, _ in max(curves.values(), key=len)})
    for x_value in values[:: -max(1, len(values) // 5)] if linear else values:
        x, y = place(x_value, y_low)
        if linear or abs(math.log2(x_value) - round(math.log2(x_value))) < 1e-9:
            out.append(f'<text x="{x:.1f}" y="{y + 16}" text-anchor="middle">{x_value:g}</text>')
    out.append(f'<text x="{left}" y="{height - 14}">{labels}</text>')
    ends = {name: place(*curve[-1]) for name, curve in curves.items()}
    if linear:  # names that would lie on each other move down
        lowest_name = -math.inf
        for name, (x, y) in sorted(ends.items(), key=lambda end: end[1][1]):
            ends[name] = x, max(y, lowest_name + 13)
            lowest_name = ends[name][1]
    for (name, curve), colour in zip(curves.items(), colours):
        path = " ".join("{:.1f},{:.1f}".format(*place(*point)) for point in curve)
        x, y = ends[name]
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
                   f'<text x="{x + 6:.1f}" y="{y + 4:.1f}" fill="{colour}">{name}</text>')
    for x_value, y_value, name in points:
        x, y = place(x_value, y_value)
        out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4"/>'
                   f'<text x="{x - 8:.1f}" y="{y - 8:.1f}" text-anchor="end">{name}</text>')
    file.write_text("\n".join([*out, "</svg>"]) + "\n")
