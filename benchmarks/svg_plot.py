"""Curves as an SVG file, for the plots of the documents."""
import math


def plot(file, title, labels, curves, points=()):
    """Curves {name: [(x, y)]} over logarithmic x, and named points, as SVG."""
    width, height, left, top = 640, 340, 70, 40
    every = [point for curve in curves.values() for point in curve] + [p[:2] for p in points]
    x_low, x_high = (math.log10(f(x for x, _ in every)) for f in (min, max))
    highest = max(y for _, y in every)
    unit = 10 ** math.floor(math.log10(highest / 4))
    step = next(unit * k for k in (1, 2, 2.5, 5, 10) if unit * k * 4 >= highest * 0.999)
    y_high = 4 * step

    def place(x, y):
        across = (math.log10(x) - x_low) / (x_high - x_low)
        return left + across * (width - left - 150), height - 50 - y / y_high * (height - 50 - top)

    colours = ("#1b6ca8", "#c2571a", "#3a7d44", "#7a4fa3", "#8a1c3b", "#555555")
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
           'font-family="sans-serif" font-size="11">',
           f'<rect width="{width}" height="{height}" fill="white"/>',
           f'<text x="{left}" y="20" font-size="13">{title}</text>']
    for tick in range(5):
        value = step * tick
        x, y = place(10 ** x_low, value)
        out.append(f'<line x1="{x}" y1="{y:.1f}" x2="{width - 150}" y2="{y:.1f}" stroke="#ddd"/>'
                   f'<text x="{x - 6}" y="{y + 4:.1f}" text-anchor="end">{value:,.3g}</text>')
    for x_value in sorted({x for x, _ in max(curves.values(), key=len)}):
        x, y = place(x_value, 0)
        if abs(math.log2(x_value) - round(math.log2(x_value))) < 1e-9:
            out.append(f'<text x="{x:.1f}" y="{y + 16}" text-anchor="middle">{x_value:g}</text>')
    out.append(f'<text x="{left}" y="{height - 14}">{labels}</text>')
    for (name, curve), colour in zip(curves.items(), colours):
        path = " ".join("{:.1f},{:.1f}".format(*place(*point)) for point in curve)
        x, y = place(*curve[-1])
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
                   f'<text x="{x + 6:.1f}" y="{y + 4:.1f}" fill="{colour}">{name}</text>')
    for x_value, y_value, name in points:
        x, y = place(x_value, y_value)
        out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4"/>'
                   f'<text x="{x - 8:.1f}" y="{y - 8:.1f}" text-anchor="end">{name}</text>')
    file.write_text("\n".join([*out, "</svg>"]) + "\n")
