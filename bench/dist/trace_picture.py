#!/usr/bin/env python3
"""A picture of one backward with its reductions, from a trace of `dist_bench steps --trace`:

    bench/dist/trace_picture.py trace_resnet18_5.json docs/images/overlap.svg
"""
import json
import sys

WIDTH, LEFT, TOP, LANE = 960, 96, 44, 34
COLOURS = {"backward": "#4a7fb0", "DataParallel.wait": "#c0504d", "all_reduce": "#4f9d69",
           "broadcast": "#4f9d69", "all_gather": "#4f9d69", "reduce_scatter": "#4f9d69", "dist.agree": "#d8d8d8"}


def main(trace, picture):
    with open(trace, encoding="utf-8") as file:
        events = [e for e in json.load(file)["traceEvents"] if e.get("ph") == "X"]
    backward = [e for e in events if e["name"] == "backward" and e["tid"] == 0][-1]
    start, end = backward["ts"], backward["ts"] + backward["dur"]
    start, end = start - 0.02 * (end - start), end + 0.02 * (end - start)

    def x(time):
        return LEFT + (min(max(time, start), end) - start) / (end - start) * (WIDTH - LEFT - 16)

    def box(event, lane, colour, title):
        left = x(event["ts"])
        width = max(x(event["ts"] + event["dur"]) - left, 0.6)
        return (f'<rect x="{left:.1f}" y="{TOP + lane * LANE}" width="{width:.1f}" height="{LANE - 8}" fill="{colour}">'
                f"<title>{title}</title></rect>")

    shapes = [box(backward, 0, COLOURS["backward"], "backward")]
    moving, hidden = 0.0, 0.0
    waits = [e for e in events if e["name"] == "DataParallel.wait" and start <= e["ts"] <= end]
    computed = waits[0]["ts"] if waits else backward["ts"] + backward["dur"]
    for event in events:
        name = event["name"]
        if not (start <= event["ts"] <= end) or name not in COLOURS or name == "backward":
            continue
        lane = 0 if name == "DataParallel.wait" else 1 if name == "dist.agree" else 2
        size = event.get("args", {}).get("Bytes", 0)
        shapes.append(box(event, lane, COLOURS[name], f"{name}, {size / 1e6:.2f} MB, {event['dur'] / 1e3:.2f} ms"))
        if lane == 2:
            moving += event["dur"]
            hidden += max(0.0, min(event["ts"] + event["dur"], computed) - event["ts"])
    height = TOP + 3 * LANE + 34
    labels = "".join(f'<text x="8" y="{TOP + lane * LANE + 17}">{text}</text>'
                     for lane, text in enumerate(("backward", "compare", "reduce")))
    length = (end - start) / 1e3
    step = next(s for s in (1, 2, 5, 10, 20, 50, 100, 200) if length / s <= 10)
    ticks = "".join(
        f'<text x="{x(backward["ts"] + t * 1e3):.1f}" y="{height - 12}" text-anchor="middle">{t} ms</text>'
        f'<line x1="{x(backward["ts"] + t * 1e3):.1f}" x2="{x(backward["ts"] + t * 1e3):.1f}" y1="{TOP - 4}" '
        f'y2="{height - 28}" stroke="#e4e4e4"/>' for t in range(0, int(length) + 1, step))
    title = (f"One backward of rank 0: {hidden / moving:.0%} of the reduction lies in what backward computes; "
             "red is what it waits for at its end")
    with open(picture, "w", encoding="utf-8") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
                   f'font-family="sans-serif" font-size="13"><rect width="100%" height="100%" fill="#fff"/>'
                   f'<text x="8" y="24" font-size="15">{title}</text>{ticks}{labels}{"".join(shapes)}</svg>\n')


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
