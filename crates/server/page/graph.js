// The concept graph: a drawing of a neighbourhood, the facts about the selected node, and their sources.

import { $, counted, get, make, path, tell } from "./core.js";

const SVG = "http://www.w3.org/2000/svg";
const LABEL = 22;

/** So many relations of the chosen node are named in the picture; more would cover one another. */
const NAMED = 8;

const ARROWS = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 };

/** Shows a place in a document. */
let showSource = null;
/** What is drawn, and for which width. */
let drawn = null;

export function offerGraph(show) {
  showSource = show;
  $("graph-form").onsubmit = (event) => { event.preventDefault(); tell(() => showGraph())(); };
  $("graph-all").onclick = tell(() => showGraph());
  new ResizeObserver(() => {
    if (drawn && drawn.width !== roomFor(drawn.graph).width) draw(drawn.graph, drawn.centre);
  }).observe($("graph-view"));
}

export function forgetGraph() {
  $("graph-view").hidden = true;
}

async function showGraph(node) {
  const small = $("graph-form").clientWidth < 500;
  const query = new URLSearchParams({ graph: $("graph-kind").value, limit: small ? 12 : 36 });
  const question = $("graph-question").value.trim();
  if (question) query.set("question", question);
  if (node !== undefined) query.set("node", node);
  const graph = await get(path(`/graph?${query}`));
  $("graph-view").hidden = false;
  $("graph-all").hidden = node === undefined;
  const read = graph.read < graph.of ? `; ${graph.read} of ${graph.of} passages have been processed` : "";
  $("graph-size").textContent = graph.all_nodes
    ? `${graph.nodes.length} of ${graph.all_nodes} nodes, ${graph.edges.length} of ${graph.all_edges} relations${read}`
    : `This graph does not exist yet${read}. Prepare the documents for the method to build it.`;
  const walking = $("graph-picture").contains(document.activeElement);
  draw(graph, node);
  describe(graph, node);
  // The selected node is redrawn and keeps the keyboard focus.
  if (walking) $("graph-picture").querySelector('[tabindex="0"]')?.focus();
}

// Force-directed layout with a fixed start, so that a graph always looks the same.
function layout(graph, width, height, centre) {
  const places = graph.nodes.map((node, at) => {
    const angle = (2 * Math.PI * at) / graph.nodes.length;
    const middle = node.id === centre;
    return { x: middle ? 0 : Math.cos(angle), y: middle ? 0 : Math.sin(angle), fixed: middle };
  });
  const index = new Map(graph.nodes.map((node, at) => [node.id, at]));
  const links = graph.edges.map(({ source, target }) => [index.get(source), index.get(target)]).filter(([a, b]) => a !== b);
  const rest = 1.6 / Math.sqrt(places.length + 1);
  for (let step = 0; step < 200; step++) {
    const moves = places.map(() => ({ x: 0, y: 0 }));
    const move = (a, b, force) => {
      const [x, y] = [places[b].x - places[a].x, places[b].y - places[a].y];
      const distance = Math.hypot(x, y) || 0.01;
      const pull = force(distance) / distance;
      moves[a].x += x * pull; moves[a].y += y * pull;
      moves[b].x -= x * pull; moves[b].y -= y * pull;
    };
    for (let a = 0; a < places.length; a++) for (let b = a + 1; b < places.length; b++) move(a, b, (distance) => -rest * rest / distance);
    for (const [a, b] of links) move(a, b, (distance) => distance * distance / rest);
    const most = 0.1 * (1 - step / 200);
    places.forEach((place, at) => {
      if (place.fixed) return;
      const length = Math.hypot(moves[at].x, moves[at].y) || 1;
      place.x += (moves[at].x / length) * Math.min(length, most);
      place.y += (moves[at].y / length) * Math.min(length, most);
    });
  }
  // Scales to the whole picture, with a margin for names.
  const scale = (key, from, to) => {
    const values = places.map((place) => place[key]);
    const [low, high] = [Math.min(...values), Math.max(...values)];
    places.forEach((place) => { place[key] = high - low < 1e-6 ? (from + to) / 2 : from + ((place[key] - low) / (high - low)) * (to - from); });
  };
  scale("x", 70, width - 70);
  scale("y", 30, height - 40);
  return new Map(graph.nodes.map((node, at) => [node.id, places[at]]));
}

function shape(name, attributes, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function roomFor(graph) {
  return { width: Math.max($("graph-view").clientWidth, 280), height: graph.nodes.length > 12 ? 480 : 320 };
}

function draw(graph, centre) {
  const picture = $("graph-picture");
  const { width, height } = roomFor(graph);
  drawn = { graph, centre, width };
  picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
  picture.setAttribute("height", graph.nodes.length ? height : 0);
  const places = layout(graph, width, height, centre);
  const drawable = graph.edges.filter(({ source, target }) => source !== target);
  const isNear = ({ source, target }) => source === centre || target === centre;
  const named = drawable.filter(isNear).length <= NAMED;
  const lines = drawable.map((edge) => {
    const { source, target, relation } = edge;
    const [a, b] = [places.get(source), places.get(target)];
    const line = shape("g", {}, shape("title", {}, `${source}: ${relation}: ${target}`), shape("line", { x1: a.x, y1: a.y, x2: b.x, y2: b.y }));
    if (named && isNear(edge)) {
      // Closer to the other end: labels would overlap at the selected node.
      const share = source === centre ? 0.62 : 0.38;
      line.append(shape("text", { class: "relation", x: a.x + share * (b.x - a.x), y: a.y + share * (b.y - a.y) }, short(relation)));
    }
    return line;
  });
  const first = centre ?? graph.nodes[0]?.id;
  const dots = graph.nodes.map((node, at) => {
    const { x, y } = places.get(node.id);
    const dot = shape("g", { class: `node ${node.id === centre ? "centre" : ""}`, tabindex: node.id === first ? 0 : -1, role: "button", "aria-label": `${node.id}, ${node.type}, ${counted(node.degree, "relation")}` },
      shape("title", {}, `${node.id}: ${node.content}`),
      shape("circle", { cx: x, cy: y, r: 6 + 2 * Math.min(Math.sqrt(node.degree), 6) }),
      shape("text", { x, y: y + 28 }, short(node.id)));
    const choose = tell(() => showGraph(node.id));
    dot.onclick = () => { step(dot, dots); choose(); };
    dot.onkeydown = (event) => {
      if (event.key === "Enter" || event.key === " ") choose();
      else if (event.key in ARROWS) step(dots.at((at + ARROWS[event.key]) % dots.length), dots);
      else return;
      event.preventDefault();
    };
    return dot;
  });
  picture.replaceChildren(...lines, ...dots);
}

const short = (name) => (name.length > LABEL ? `${name.slice(0, LABEL - 1)}…` : name);

// One node is in the tab order; arrow keys move to the others.
function step(dot, dots) {
  for (const other of dots) other.setAttribute("tabindex", other === dot ? 0 : -1);
  dot.focus();
}

// The facts about the selected node, each with its sources.
function describe(graph, id) {
  const facts = $("graph-facts");
  const node = graph.nodes.find((node) => node.id === id);
  $("graph-node").textContent = node ? `${node.id} (${node.type})` : "";
  $("graph-content").textContent = node?.content || "";
  if (!node) return facts.replaceChildren();
  const lines = [fact(["read in"], node.sources)];
  for (const edge of graph.edges) {
    const away = edge.source === id;
    if (!away && edge.target !== id) continue;
    const other = make("button", away ? edge.target : edge.source, { type: "button", className: "link" });
    other.onclick = tell(() => showGraph(away ? edge.target : edge.source));
    lines.push(fact(away ? [`${edge.relation} → `, other] : [other, ` ${edge.relation} → ${id}`], edge.sources));
  }
  facts.replaceChildren(...lines);
}

function fact(words, sources) {
  const line = make("li");
  line.append(...words);
  for (const source of sources) {
    if (source.start === undefined) {
      line.append(make("span", ` ${source.path}, source not found`, { className: "small" }));
      continue;
    }
    const button = make("button", `${source.path}, ${source.start} to ${source.end}`, { type: "button", className: "place" });
    if (source.match !== "exact") button.title = source.match;
    button.onclick = tell(() => showSource(source.document, source.start, source.end));
    line.append(" ", button);
  }
  return line;
}
