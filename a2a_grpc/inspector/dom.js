/* Elements made from code; text is always text.
   Laws: no HTML is ever parsed, so nothing that an agent says can become part of the page. */

/** An element. props: attributes, `onclick` and the like, `class`; null and false ones are left out. */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** A button that does something, and shows that it is at it. */
export function button(text, act, props = {}) {
  const made = h("button", {
    type: "button",
    ...props,
    onclick: async () => {
      made.setAttribute("aria-busy", "true");
      try {
        await act();
      } catch (fault) {
        tell(fault);
      } finally {
        made.removeAttribute("aria-busy");
      }
    },
  }, text);
  return made;
}

/** A labelled field. */
export const field = (text, input) => h("label", {}, `${text} `, input);

/** A choice; options: [value, text] pairs. */
export const choice = (options, props = {}) =>
  h("select", props, options.map(([value, text]) => h("option", { value }, text)));

/** Say what went wrong, above the view; nothing takes the line away. */
export function tell(fault) {
  const notice = document.getElementById("notice");
  notice.textContent = fault ? (fault.told ?? fault.message ?? String(fault)) : "";
}

/** A state as a small badge. */
export const badge = (words) => h("span", { class: `badge ${words.replaceAll(" ", "-")}` }, words || "unknown");

/** A button that copies a text. */
export function copier(text, make) {
  const made = button(text, async () => {
    await navigator.clipboard.writeText(make());
    made.textContent = "Copied";
    setTimeout(() => { made.textContent = text; }, 1500);
  });
  return made;
}
