/* A form for the answer to a question, from the JSON Schema that came with it.
   Laws: objects of plain fields get a field each; whatever else a schema says is asked for as JSON. */

import { choice, field, h } from "./dom.js";

/** Fields by the type of a schema: how to make the input, how to read its value. */
const INPUTS = {
  string: ({ format, minLength, maxLength, pattern, default: value }) => [
    h("input", {
      type: { date: "date", email: "email", uri: "url", password: "password" }[format] ?? "text",
      minlength: minLength, maxlength: maxLength, pattern: pattern && `.*(?:${pattern}).*`, value,
    }),
    (input) => input.value,
  ],
  integer: ({ minimum, maximum, default: value }) => [
    h("input", { type: "number", step: 1, min: minimum, max: maximum, value }),
    (input) => Number(input.value),
  ],
  number: ({ minimum, maximum, default: value }) => [
    h("input", { type: "number", step: "any", min: minimum, max: maximum, value }),
    (input) => Number(input.value),
  ],
  boolean: ({ default: value }) => [h("input", { type: "checkbox", checked: value === true }), (input) => input.checked],
};

/** The values that there are, each with what it is called; null where a schema has no list of them. */
function named({ enum: values, oneOf }) {
  if (values) return values.map((value) => ({ const: value, title: String(value) }));
  return oneOf?.every((one) => "const" in one) ? oneOf.map((one) => ({ title: String(one.const), ...one })) : null;
}

function enumerated(values, required, given) {
  const select = choice([...(required ? [] : [["", ""]]), ...values.map(({ title }, index) => [index, title])]);
  const index = values.findIndex((one) => one.const === given);
  if (index >= 0) select.value = index;
  return [select, () => values[Number(select.value)].const];
}

function isJson(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return text === "";
  }
}

function json(schema) {
  const check = () => input.setCustomValidity(isJson(input.value) ? "" : "This is not JSON.");
  const input = h("textarea", { rows: 3, placeholder: "JSON", oninput: check });
  if (schema.default !== undefined) input.value = JSON.stringify(schema.default);
  return [input, () => JSON.parse(input.value)];
}

function made(schema, name, required) {
  const values = named(schema);
  const [input, read] = values ? enumerated(values, required, schema.default) : (INPUTS[schema.type] ?? json)(schema);
  input.required = required && input.type !== "checkbox";
  if (schema.description) input.title = schema.description;
  const told = schema.title ?? name;
  const value = () => (input.value === "" && !required ? undefined : read(input));
  return [field(required ? told : `${told} (optional)`, input), value];
}

/** A form for a schema. answer: called with the value that was filled in. */
export function answerForm(schema, answer) {
  const several = schema.type === "object" && schema.properties;
  const asked = schema.required ?? [];
  const names = several ? [...new Set([...asked, ...Object.keys(schema.properties)])].filter((name) => name in schema.properties) : [];
  const rows = several
    ? names.map((name) => made(schema.properties[name], name, asked.includes(name)))
    : [made(schema, schema.title ?? "Answer", true)];
  const value = () => {
    if (!several) return rows[0][1]();
    return Object.fromEntries(names.map((name, index) => [name, rows[index][1]()]).filter(([, each]) => each !== undefined));
  };
  const form = h("form", {
    class: "answer",
    "aria-label": "Answer",
    onsubmit: (event) => {
      event.preventDefault();
      answer(value());
    },
  }, rows.map(([label]) => label), h("button", {}, "Answer"));
  return form;
}
