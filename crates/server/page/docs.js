// Shows /openapi.json for reading: routes by tag, with the fields of their requests.
"use strict";

function make(tag, text, ...children) {
  const element = document.createElement(tag);
  if (text) element.textContent = text;
  element.append(...children);
  return element;
}

// Words with code between backticks.
function prose(text) {
  return text.split("`").map((part, at) => (at % 2 ? make("code", part) : part));
}

function shown(schema, all, depth = 0) {
  if (!schema || depth > 6) return "";
  if (schema.$ref) return shown(all[schema.$ref.split("/").pop()], all, depth + 1);
  const some = schema.oneOf || schema.anyOf;
  if (some) return some.filter((one) => one.type !== "null").map((one) => shown(one, all, depth + 1)).join(" | ");
  if (schema.allOf) return schema.allOf.map((one) => shown(one, all, depth + 1)).join(" & ");
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.properties) {
    const required = schema.required || [];
    const fields = Object.entries(schema.properties).map(([name, value]) => {
      const says = value.description ? `  // ${value.description.replaceAll("\n", " ")}` : "";
      return `${"  ".repeat(depth + 1)}${name}${required.includes(name) ? "" : "?"}: ${shown(value, all, depth + 1)}${says}`;
    });
    return `{\n${fields.join("\n")}\n${"  ".repeat(depth)}}`;
  }
  if (schema.type === "array" || schema.items) return `[${shown(schema.items, all, depth + 1)}]`;
  return [].concat(schema.type || "any").filter((type) => type !== "null").join(" | ");
}

async function main() {
  const api = await (await fetch("/openapi.json")).json();
  const all = api.components?.schemas || {};
  document.getElementById("about").textContent = `${api.info.description} Version ${api.info.version}.`;
  const sections = new Map();
  for (const [path, item] of Object.entries(api.paths)) {
    for (const [method, operation] of Object.entries(item)) {
      if (typeof operation !== "object" || Array.isArray(operation)) continue;
      const tag = operation.tags?.[0] || "Other";
      if (!sections.has(tag)) sections.set(tag, make("section", "", make("h2", tag)));
      const route = make("details", "", make("summary", "", make("code", `${method.toUpperCase()} ${path}`), " ", ...prose(operation.summary || operation.description || "")));
      const query = (operation.parameters || []).filter((parameter) => parameter.in === "query");
      const lines = query.map(({ name, required, description }) => make("li", "", make("code", `${name}${required ? "" : "?"}`), " ", ...prose(description || "")));
      if (lines.length) route.append(make("h3", "Query"), make("ul", "", ...lines));
      for (const [type, { schema }] of Object.entries(operation.requestBody?.content || {})) {
        route.append(make("h3", `Request (${type})`), make("pre", shown(schema, all)));
      }
      const answers = Object.entries(operation.responses || {}).map(([status, { description }]) => make("li", `${status} ${description || ""}`));
      route.append(make("h3", "Answers"), make("ul", "", ...answers));
      sections.get(tag).append(route);
    }
  }
  document.getElementById("routes").append(...sections.values());
}

main().catch((error) => { document.getElementById("about").textContent = `The description cannot be shown: ${error.message}`; });
