// Elements of the page. Data from the gateway is inserted as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

/** Creates an element with a class and children: elements, or values to be shown as text. */
export function element(name, className, ...children) {
    const made = document.createElement(name);
    if (className) made.className = className;
    made.append(...children.map(child => (child instanceof Node ? child : String(child))));
    return made;
}

/** Creates an SVG element with attributes. */
export function svg(name, attributes = {}, ...children) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children.map(child => (child instanceof Node ? child : String(child))));
    return made;
}

/** Returns the element with this id. */
export function byId(id) {
    return document.getElementById(id);
}

/** Sets the text of an element, if it has changed. */
export function setText(where, text) {
    if (where.textContent !== text) where.textContent = text;
}

/** Creates a table of texts and elements; a cell may also be `{text, className}`. On a phone each row is a card with labelled cells. */
export function table(heads, rows) {
    const named = heads.map(head => (typeof head === "object" ? head.text : head));
    const cell = (name, value) => {
        if (value instanceof Node) return element(name, "", value);
        if (typeof value === "object") return element(name, value.className, value.text);
        return element(name, "", value);
    };
    const head = element("thead", "", element("tr", "", ...heads.map(value => cell("th", value))));
    for (const th of head.querySelectorAll("th")) th.scope = "col";
    const body = rows.map(row => element("tr", "", ...row.map((value, index) => {
        const made = cell("td", value);
        made.dataset.head = named[index];
        return made;
    })));
    return element("table", "", head, element("tbody", "", ...body));
}
