// List of alerts at the top of the page.

import { byId, element } from "./elements.js";

/** Maximum number of alerts shown. */
const SHOWN = 8;

/** Shows the alerts, or "No alerts". Updates the page only when they change. */
export function showAlerts(found) {
    const where = byId("alerts");
    const told = JSON.stringify(found);
    if (where.dataset.told === told) return;
    where.dataset.told = told;
    const shown = found.slice(0, SHOWN).map(({ level, text, detail }) =>
        element("li", level, element("b", "", text), ...(detail ? [element("span", "", detail)] : [])));
    if (found.length === 0) shown.push(element("li", "good", "No alerts"));
    if (found.length > SHOWN) shown.push(element("li", "warn", `and ${found.length - SHOWN} more`));
    where.replaceChildren(...shown);
}
