// Chart of a time window: lines or stacked areas, with gaps where data is missing.

import { element, setText, svg } from "./elements.js";
const HEIGHT = 168;
const MARGIN = { top: 8, right: 8, bottom: 20, left: 48 };

/**
 * A chart in a figure. `series` are the `{key, label}` of the points' values, `optional` if they may be absent, and `format`
 * formats a value. `least` is the minimum upper end of the scale, `top` a fixed upper end; `stacked` draws stacked areas,
 * `logarithmic` gives each power of ten the same height.
 */
export class Chart {
    #figure;
    #options;
    #picture = svg("svg", { role: "img" });
    #rule = svg("line", { class: "rule" });
    #values = new Map();
    #empty = element("p", "empty");
    #points = [];
    #window = 1;
    #pointed = null;

    constructor(figure, options) {
        this.#figure = figure;
        this.#options = { least: 1, top: null, stacked: false, logarithmic: false, empty: "No data yet.", ...options };
        const legend = element("ul", "legend", ...options.series.map(({ key, label }, index) => {
            const value = element("b", "");
            this.#values.set(key, value);
            return element("li", `series-${index}`, element("i", ""), `${label} `, value);
        }));
        figure.append(legend, element("div", "picture", this.#picture, this.#empty));
        new ResizeObserver(() => this.#draw()).observe(figure);
        this.#picture.addEventListener("pointermove", event => this.#point(event.offsetX));
        this.#picture.addEventListener("pointerleave", () => this.#point(null));
    }

    /** Shows the points of a window in seconds that ends now; `happened` is false as long as there is no data. */
    update(points, window, happened) {
        this.#points = points;
        this.#window = window;
        setText(this.#empty, happened ? "" : this.#options.empty);
        this.#draw();
    }

    #point(x) {
        this.#pointed = x;
        this.#tell();
    }

    #draw() {
        const width = this.#figure.clientWidth;
        if (width === 0) return;
        this.#picture.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
        this.#picture.setAttribute("width", width);
        this.#picture.setAttribute("height", HEIGHT);
        const scale = this.#scale(width);
        const shapes = this.#options.stacked ? this.#areas(scale) : this.#lines(scale);
        this.#picture.replaceChildren(...grid(scale, this.#options.format), ...shapes, this.#rule);
        this.#tell();
    }

    /** Returns the mapping from times and values to coordinates. */
    #scale(width) {
        const end = this.#points.at(-1)?.time ?? 0;
        const heights = this.#points.map(({ values }) => this.#stack(values).at(-1) ?? 0);
        const [inner, high] = [width - MARGIN.left - MARGIN.right, HEIGHT - MARGIN.top - MARGIN.bottom];
        const { ticks, share } = this.#options.logarithmic
            ? logarithmic(this.#positive())
            : linear(this.#options.top ?? niceTop(Math.max(this.#options.least, ...heights)));
        return {
            ticks,
            width,
            window: this.#window,
            x: time => MARGIN.left + inner * (1 - (end - time) / this.#window),
            y: value => MARGIN.top + high * (1 - Math.min(1, Math.max(0, share(value)))),
        };
    }

    /** Returns all values above zero, which have a logarithm. */
    #positive() {
        const keys = this.#options.series.map(({ key }) => key);
        return this.#points.flatMap(({ values }) => keys.map(key => values?.[key] ?? 0)).filter(value => value > 0);
    }

    /** Returns the upper edges of a point's stacked series; for lines, only the highest value. */
    #stack(values) {
        if (values === null) return [];
        const each = this.#options.series.map(({ key }) => values[key] ?? 0);
        if (!this.#options.stacked) return [Math.max(...each)];
        let sum = 0;
        return each.map(value => (sum += value));
    }

    #lines(scale) {
        return this.#options.series.flatMap(({ key }, index) =>
            runs(this.#points, values => values?.[key] ?? null).map(run => {
                const places = run.map(({ time, value }) => `${place(scale.x(time))},${place(scale.y(value))}`);
                return run.length === 1 ? dot(scale, run[0], index) : svg("polyline", { class: `line series-${index}`, points: places.join(" ") });
            }),
        );
    }

    #areas(scale) {
        return this.#options.series.flatMap((_, index) =>
            runs(this.#points, values => (values === null ? null : this.#stack(values))).map(run => {
                const edge = (stack, at) => scale.y(at < 0 ? 0 : stack[at]);
                const upper = run.map(({ time, value }) => [scale.x(time), edge(value, index)]);
                const lower = run.map(({ time, value }) => [scale.x(time), edge(value, index - 1)]).reverse();
                const places = [...upper, ...lower].map(([x, y]) => `${place(x)},${place(y)}`);
                return svg("polygon", { class: `area series-${index}`, points: places.join(" ") });
            }),
        );
    }

    /** Shows the values of the point under the pointer, or the newest ones. */
    #tell() {
        const scale = this.#scale(this.#figure.clientWidth);
        const pointed = this.#pointed;
        const near = (best, point) => (Math.abs(scale.x(point.time) - pointed) < Math.abs(scale.x(best.time) - pointed) ? point : best);
        const shown = pointed === null || this.#points.length === 0 ? this.#points.at(-1) : this.#points.reduce(near);
        const hidden = pointed === null || shown === undefined;
        const at = hidden ? 0 : place(scale.x(shown.time));
        const rule = { x1: at, x2: at, y1: MARGIN.top, y2: HEIGHT - MARGIN.bottom, visibility: hidden ? "hidden" : "visible" };
        for (const [key, value] of Object.entries(rule)) this.#rule.setAttribute(key, value);
        const told = ({ key, optional }) => !optional || this.#points.some(({ values }) => (values?.[key] ?? null) !== null);
        const said = this.#options.series.map(({ key, label, optional }) => {
            const text = this.#options.format(shown?.values?.[key] ?? null);
            setText(this.#values.get(key), text);
            this.#values.get(key).parentElement.hidden = !told({ key, optional });
            return `${label} ${text}`;
        });
        this.#picture.setAttribute("aria-label", said.join(", "));
    }
}

/** Returns runs of consecutive points that have a value. */
export function runs(points, valueOf) {
    const found = [];
    let run = [];
    for (const { time, values } of [...points, { time: 0, values: null }]) {
        const value = valueOf(values);
        if (value !== null) {
            run.push({ time, value });
        } else if (run.length > 0) {
            found.push(run);
            run = [];
        }
    }
    return found;
}

/** Rounds up to 1, 2, 4, 5 or 8 times a power of ten. */
export function niceTop(value) {
    const power = 10 ** Math.floor(Math.log10(value));
    return [1, 2, 4, 5, 8, 10].map(step => step * power).find(top => top >= value * 0.999) ?? value;
}

/** Returns a linear scale from zero to `top`, with its ticks. */
function linear(top) {
    return { ticks: [0, top / 2, top], share: value => value / top };
}

/** Returns a logarithmic scale, from the power of ten below all values to the one above them. */
export function logarithmic(values) {
    const [least, most] = values.length > 0 ? [Math.min(...values), Math.max(...values)] : [1e-4, 1e-2];
    const low = Math.floor(Math.log10(least) + 1e-9);
    const high = Math.max(low + 1, Math.ceil(Math.log10(most) - 1e-9));
    const ticks = Array.from({ length: high - low + 1 }, (_, index) => Number(`1e${low + index}`));
    return { ticks, share: value => (value > 0 ? (Math.log10(value) - low) / (high - low) : 0) };
}

function grid(scale, format) {
    const level = value => {
        const y = place(scale.y(value));
        return [
            svg("line", { class: "grid", x1: MARGIN.left, x2: scale.width - MARGIN.right, y1: y, y2: y }),
            svg("text", { class: "tick", x: MARGIN.left - 6, y: y + 4, "text-anchor": "end" }, format(value)),
        ];
    };
    const minutes = Math.round(scale.window / 60);
    const label = (x, anchor, text) => svg("text", { class: "tick", x, y: HEIGHT - 4, "text-anchor": anchor }, text);
    return [
        ...scale.ticks.flatMap(level),
        label(MARGIN.left, "start", minutes === 60 ? "1 h ago" : `${minutes} min ago`),
        label(scale.width - MARGIN.right, "end", "now"),
    ];
}

function dot(scale, { time, value }, index) {
    return svg("circle", { class: `dot series-${index}`, cx: place(scale.x(time)), cy: place(scale.y(value)), r: 2 });
}

function place(coordinate) {
    return Math.round(coordinate * 10) / 10;
}
